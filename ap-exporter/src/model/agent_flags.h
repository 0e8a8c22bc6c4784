/* agent_flags.h: what the push service says about one AP beside its bundles. The agent's thread writes, any thread
 * reads, without a lock.
 *
 * They are what they were over a lost connection, a reload and (with a state_dir) a restart, until the service says
 * otherwise. They are in place before the first tick. Without an agent nobody writes: all are false. */
#ifndef OAL_AGENT_FLAGS_H
#define OAL_AGENT_FLAGS_H

#include <stdatomic.h>
#include <stdbool.h>

struct agent_flags {
	atomic_bool
		killed; /* an operator turned control off for this AP, its site or the fleet: nothing may be clamped */
};

static inline bool agent_flags_killed(const struct agent_flags *f)
{
	return atomic_load_explicit(&f->killed, memory_order_acquire);
}

#endif
