/* replay_config.h: what a replay is given, and what it counts. */
#ifndef OAL_REPLAY_CONFIG_H
#define OAL_REPLAY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline_config.h"
#include "pipeline/pipeline_stats.h"

struct pipeline;

struct replay_config {
	const char *path;
	bool loop;
	unsigned aps; /* 0 is 1; at most 1000 */
	const char *ap_id; /* with one AP its name; with more, they are AP_ID-0001, AP_ID-0002, … */
	const char *site; /* may be NULL */
	const char *client_net; /* pcap: see pcap_network_parse(); NULL or "": the side that opened the connection */
	uint64_t start_us; /* realtime at which the first AP starts */
	uint32_t speed_percent; /* 0 is 100. Rows' times run at this speed too: above 100 they run ahead of the clock */
	uint64_t boot_id; /* AP i takes boot_id + i */
	const struct oal_feature_program *program; /* NULL: no features */
	const uint8_t *pseudonym_key;
	size_t pseudonym_key_len;
	unsigned max_flows, max_packets_per_batch; /* as in pipeline_config */
	const char *version; /* for health rows; NULL: none are made */
	/* Makes the access point around the data path of AP `i`, with this configuration, and says which that is; the
	 * caller frees it, before replay_free(). Negative errno with the reason in `err`. NULL: each AP is a pipeline
	 * and no more. */
	int (*open_ap)(void *ctx, unsigned i, const struct pipeline_config *, struct pipeline **, char *err,
		       size_t err_size);
	void (*emit)(void *ctx, const char *ap_id, const struct batch_out *);
	uint64_t (*now_ns)(void); /* as in pipeline_config */
	/* Fills what a pipeline does not know of a health row: sink, CPU, memory. May be NULL. */
	void (*health)(void *ctx, struct oal_health_row *);
	void *ctx;
};

struct replay_stats {
	unsigned aps;
	uint64_t loops; /* times that the file began, all APs */
	uint64_t batches_read, batches_refused; /* of the file, as played */
	uint64_t other_ap; /* records of the file that are another AP's than its first: not played */
	uint64_t rows_skipped; /* of entities beyond what a pipeline takes */
	uint64_t breaks; /* places where the file is damaged */
	struct pipeline_stats pipeline; /* sums over all APs */
};

#endif
