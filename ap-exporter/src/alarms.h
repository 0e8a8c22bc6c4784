/* alarms.h: what an owner must hear of while the daemon runs on: said in the log when it begins and ends, and in the
 * status as long as it lasts. */
#ifndef OAL_ALARMS_H
#define OAL_ALARMS_H

#include <stdbool.h>

struct collectors;
struct controller;
struct json;

enum {
	ALARMS_MOST = 8, /* at once; more are not said */
	ALARMS_TEXT = 384, /* bytes of one */
};

struct alarms {
	struct {
		unsigned source; /* 0: control; else 1 + number of the collector */
		bool fresh; /* still there at this check */
		char text[ALARMS_TEXT];
	} now[ALARMS_MOST];
	unsigned n;
};

#if defined HAVE_AGENT || defined HAVE_BPF
/* Once a second. `controller` may be NULL. */
void alarms_check(struct alarms *, const struct controller *, const struct collectors *);
/* Adds `"alarms": ["…", …]` to a JSON object that has members. */
void alarms_json(const struct alarms *, struct json *);
#else /* neither control nor programs: nothing that could raise one */
static inline void alarms_check(struct alarms *a, const struct controller *k, const struct collectors *c) {}
static inline void alarms_json(const struct alarms *a, struct json *j) {}
#endif

#endif
