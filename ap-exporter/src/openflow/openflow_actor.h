/* openflow_actor.h: effects as flows of an Open vSwitch bridge, over its management socket: what the backends `ovs` of
 * all actions share.
 *
 * What the switch knows is a flow an effect, gone by itself in two steps: the datapath stops at the effect's deadline,
 * whatever has become of the agent or of ovs-vswitchd; and the switch forgets the flow, hard timeout 1 s, OpenFlow's
 * least. Sets are sent and not waited for: what the switch says to them comes later, is counted, and makes sets fail
 * for a second. A bridge that is away is looked for again and again. */
#ifndef OAL_OPENFLOW_ACTOR_H
#define OAL_OPENFLOW_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openflow/openflow.h"

enum { OPENFLOW_ACTOR_WAYS = 2 };

struct json;
struct openflow_actor;

/* What an actor does, and where. */
struct openflow_trade {
	const char *rundir, *bridge;
	const char *action; /* for messages: what the switch must know */
	enum openflow_kind kind;
	unsigned ways; /* of its flows, each counted by itself under the next cookie; at most OPENFLOW_ACTOR_WAYS */
	uint64_t cookie; /* whose flows are whose */
};

/* Can it work there? 0, or negative errno with what to do in `err`. Changes nothing. */
int openflow_actor_check(const struct openflow_trade *, char *err, size_t err_size);
/* Also at a bridge that is yet to come up. */
int openflow_actor_open(struct openflow_actor **, const struct openflow_trade *, char *err, size_t err_size);
/* -ENOTCONN: the bridge is away; -EOPNOTSUPP: it came back without the action; -ENOSPC: its flow table is full. */
int openflow_actor_set(struct openflow_actor *, unsigned way, const struct openflow_rule *, uint16_t ttl_ms);
/* Without a switch there is nothing to release: the datapath's deadline stands. */
int openflow_actor_release(struct openflow_actor *, unsigned way, const struct openflow_rule *);
void openflow_actor_release_all(struct openflow_actor *);
void openflow_actor_poll(struct openflow_actor *, uint64_t now_us);
bool openflow_actor_ready(const struct openflow_actor *);
/* What the switch complained of. */
uint64_t openflow_actor_errors(const struct openflow_actor *);
/* That met the flows of this way, as of the last count. */
uint64_t openflow_actor_packets(const struct openflow_actor *, unsigned way);
void openflow_actor_json(const struct openflow_actor *, struct json *);
/* Waits a moment for the switch to say that the flows are gone; should it not, their time ends all the same. */
void openflow_actor_close(struct openflow_actor *);

#endif
