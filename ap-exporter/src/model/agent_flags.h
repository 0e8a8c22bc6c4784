/* agent_flags.h: what the push service says about one AP beside its bundles. The agent's thread writes, any thread
 * reads, without a lock.
 *
 * They are what they were over a lost connection, a reload and (with a state_dir) a restart, until the service says
 * otherwise. They are in place before the first tick. Without an agent nobody writes: all are false. */
#ifndef OAL_AGENT_FLAGS_H
#define OAL_AGENT_FLAGS_H

#include "oal_schema.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct agent_flags {
	atomic_bool killed; /* an operator turned control off for this AP, its site or the fleet: nothing may be done */
	/* Policies that are off by themselves: agent_flags_name() of each, 0 where there is none. */
	_Atomic uint32_t killed_policies[OAL_SETTING_MAX_KILLED_POLICIES];
};

/* A policy's name as a number, never 0 (FNV-1a). Two names that share one are off together. */
static inline uint32_t agent_flags_name(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h ? h : 1;
}

static inline bool agent_flags_policy_killed(const struct agent_flags *f, const char *policy)
{
	uint32_t name = 0;

	for (unsigned i = 0; i < OAL_SETTING_MAX_KILLED_POLICIES; i++) {
		const uint32_t killed = atomic_load_explicit(&f->killed_policies[i], memory_order_acquire);

		if (!killed)
			continue;
		name = name ? name : agent_flags_name(policy);
		if (killed == name)
			return true;
	}
	return false;
}

static inline bool agent_flags_killed(const struct agent_flags *f)
{
	return atomic_load_explicit(&f->killed, memory_order_acquire);
}

#endif
