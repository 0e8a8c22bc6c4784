/* rwnd_command.h: a line of what `ap-exporter rwnd` reads. */
#ifndef OAL_RWND_COMMAND_H
#define OAL_RWND_COMMAND_H

#include "rewrite/rwnd.h"

enum rwnd_verb { RWND_NOTHING, RWND_SET, RWND_RELEASE, RWND_RELEASE_ALL, RWND_STATS, RWND_SLEEP, RWND_QUIT };

struct rwnd_command {
	enum rwnd_verb verb;
	struct rwnd_flow flow;
	uint32_t bytes, ttl_ms, sleep_ms;
};

/*
 * Reads a line: `set CLIENT:PORT SERVER:PORT BYTES TTL_MS [SCALE [MSS]] [up|down]`, `release CLIENT:PORT SERVER:PORT
 * [up|down]`, `release all`, `stats`, `sleep MS`, `quit`. IPv6 addresses are in brackets. Without SCALE the backend's
 * own knowledge counts; without a direction the client's ACKs on their way up are meant. An empty line and one that
 * starts with # is RWND_NOTHING. 0, or -EINVAL with what is wrong in `err`.
 */
int rwnd_command_parse(struct rwnd_command *, const char *line, char *err, size_t err_size);

#endif
