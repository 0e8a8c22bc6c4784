/* mark_command.h: a line of what `ap-exporter mark` reads. */
#ifndef OAL_MARK_COMMAND_H
#define OAL_MARK_COMMAND_H

#include "mark/mark.h"

enum mark_verb {
	MARK_NOTHING, MARK_SET, MARK_RELEASE, MARK_RELEASE_EVERY, MARK_STATS, MARK_QUIT,
};

struct mark_command {
	enum mark_verb verb;
	struct mark_station station;
	uint8_t marks;
	uint32_t ttl_ms;
};

/* Reads a line: `set MAC MARKS TTL_MS [INTERVAL_US]`, where MARKS is 1 (ECT(1)), 2 (ECT(0)) or 3; `release MAC`,
 * `release all`, `stats`, `quit`. An empty line and one that starts with # is MARK_NOTHING. 0, or -EINVAL with what is
 * wrong in `err`. */
int mark_command_parse(struct mark_command *, const char *line, char *err, size_t err_size);

#endif
