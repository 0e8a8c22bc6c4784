/* replay.h: plays a file as one or several APs, now.
 *
 * A capture (.oalcap) is decoded to rows and packets, which go through a pipeline each again: dedup, flow tracker, batches
 * and features run as they do on live data. Packets of a pcap or pcapng file go the same way.
 *
 * Time. The file's first decision interval is laid on the first one at or after start_us; all other times keep their
 * distance, so the n-th AP's decisions see what the file's AP saw. AP i starts i/aps of a batch later than the first.
 *
 * Loop. When the file ends it starts over, at the next multiple of the decision interval. Counters go on from where they
 * were (their first value is taken for their last), flows end and others begin: the higher port of each differs from loop
 * to loop, so that sequence numbers that start over are not taken for retransmissions. boot_id and seq go on. */
#ifndef OAL_REPLAY_H
#define OAL_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"

struct replay;

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
	/* Makes the access point around the data path of AP `i`, with this configuration, and says which that is; the caller frees
	 * it, before replay_free(). Negative errno with the reason in `err`. NULL: each AP is a pipeline and no more. */
	int (*open_ap)(void *ctx, unsigned i, const struct pipeline_config *, struct pipeline **, char *err, size_t err_size);
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

/* Reads the whole file. Negative errno, with what is wrong and what to do in `err`. */
int replay_new(struct replay **, const struct replay_config *, char *err, size_t err_size);
void replay_free(struct replay *);
/* Plays all that is due by `now_us`. 1: there is more to come; 0: every AP has come to the end. */
int replay_advance(struct replay *, uint64_t now_us);
/* When the next tick of an AP is due. UINT64_MAX at the end. */
uint64_t replay_next_us(const struct replay *);
/* Emits what is open; for shutdown. At the end of the file it was done already. */
void replay_flush(struct replay *);
void replay_stats(const struct replay *, struct replay_stats *);

#endif
