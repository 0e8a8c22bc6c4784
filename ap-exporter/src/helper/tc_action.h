/* tc_action.h: what actions by tc programs share (rewrite/action.h). An object is loaded, its programs go to the Wi-Fi
 * ports by way of the helper, records of what is to be done go to the helper, and counters come back. */
#ifndef OAL_TC_ACTION_H
#define OAL_TC_ACTION_H

#include "helper/helper.h"
#include "helper/tc_ports.h"

#include <stddef.h>
#include <stdint.h>

struct bpf_object;
struct json;

/* What the helper has of an action: `self` of its command. */
struct tc_action_programs {
	int table, counters; /* maps: of subjects, by processor */
	int cpus;
	void *counts; /* one a processor: room for an answer of the kernel */
};

struct tc_action_kind {
	const char *name; /* section of the configuration, also in messages */
	const char *object, *object_end; /* compiled by clang (see Makefile) */
	const char *up, *down; /* its programs */
	const char *table; /* its map of subjects; that of counters is `counters` */
	size_t counts_size; /* bytes of a processor's counters */
	uint32_t priority; /* TC_PRIORITY_… */
	uint8_t set_fields, release_fields; /* of records: HELPER_… of helper/serve.h */
	int (*command)(void *tc_action_programs, const struct helper_record *, struct helper_answer *);
};

struct tc_action_size {
	const char *map;
	uint32_t entries;
};

struct tc_action {
	const struct tc_action_kind *kind;
	struct bpf_object *object; /* NULL once the helper holds it */
	struct tc_ports ports;
	struct tc_action_programs programs;
	int up, down; /* programs */
	uint64_t counts[HELPER_VALUES]; /* of all processors together, as last read */
	uint64_t late_errors; /* of sets that had been sent */
	int set_error; /* of the last, where the answer is there at once */
};

/* As action_ops.check(); `ports`: names, separated by commas. */
int tc_action_check(const struct tc_action_kind *, const char *ports, char *err, size_t err_size);
/* Loads it with maps of these sizes, hands it to the helper, and has it put on the ports that are there. 0, or negative
 * errno with the reason in `err`; then nothing is left. */
int tc_action_open(struct tc_action **, const struct tc_action_kind *, const char *ports,
		   const struct tc_action_size *sizes, unsigned n_sizes, char *err, size_t err_size);
/* 0 or negative errno, as action_ops.set(); once the helper runs, what it says comes later, in late_errors. */
int tc_action_send(struct tc_action *, enum helper_command, struct helper_record *);
/* Ends everything that is in force. */
void tc_action_clear(struct tc_action *);
/* Asks for the counters: `counts` is the last answer, while the helper runs that to the time before. What was last
 * known stays where it fails. */
void tc_action_read(struct tc_action *);
/* Is there a port with a program at egress? An old `ingress` qdisc leaves no place for one. */
bool tc_action_at_egress(const struct tc_action *);
/* Adds its ports and its last error. `egress`: the name under which is said that a port has a program at egress too;
 * NULL: without one the port is not attached. */
void tc_action_json(const struct tc_action *, const char *egress, struct json *);
/* A map's descriptor, until the helper has it; for tests and benches. */
int tc_action_map(const struct tc_action *, const char *name);
/* Takes the programs off. NULL is fine. */
void tc_action_close(struct tc_action *);

#endif
