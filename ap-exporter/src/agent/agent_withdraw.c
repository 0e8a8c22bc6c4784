#ifdef HAVE_AGENT
/* A policy that the push service no longer wants on this AP: nothing of it stays. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/version.h"

#include <stdlib.h>
#include <string.h>

/* Its effects end at the next tick, when nothing of it is in force. */
static void give_up(struct agent_ap *ap, struct agent_policy *p)
{
	log_info(OAL_HERE " %s: policy %s is given up: the push service does not want it here any more", ap->ap_id,
		 p->name);
	ap->view.counts.given_up++;
	agent_bundle_drop_waiting(ap, p);
	agent_flash_remove(ap, p);
	if (p->accepted)
		inference_withdraw(p->inference);
	free(p->accepted_bytes);
	p->accepted = NULL;
	p->accepted_bytes = NULL;
	p->program = p->in_force = 0;
	p->unsaved = false;
	p->saved_us = 0;
}

static bool has(const char *list, const char *name)
{
	const size_t len = strlen(name);

	while (*list) {
		const size_t n = strcspn(list, " ");

		if (n == len && !memcmp(list, name, n))
			return true;
		list += n;
		list += *list == ' ';
	}
	return false;
}

bool agent_policies_keep(struct agent_ap *ap, const char *list)
{
	bool any = false;
	unsigned i;

	for (i = 1; i < BUNDLE_MAX_POLICIES; i++)
		if (agent_policy_used(&ap->policies[i]) && !has(list, ap->policies[i].name)) {
			give_up(ap, &ap->policies[i]);
			any = true;
		}
	return any;
}
#endif
