#ifdef HAVE_AGENT
/* The policies of an AP: which place each has, and what a poll says of them. */
#include "agent/agent_ap_state.h"

#include <stdio.h>
#include <string.h>

const char agent_rwnd_fair[] = "rwnd-fair";

void agent_hash_text(char out[65], const uint8_t hash[32])
{
	unsigned i;

	for (i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

bool agent_policy_used(const struct agent_policy *p)
{
	return p->accepted || p->waiting;
}

struct agent_policy *agent_policy_place(struct agent_ap *ap, const char *name)
{
	struct agent_policy *unused = NULL;
	unsigned i;

	if (!strcmp(name, agent_rwnd_fair))
		return &ap->policies[0];
	for (i = 1; i < BUNDLE_MAX_POLICIES; i++) {
		struct agent_policy *p = &ap->policies[i];

		if (!agent_policy_used(p))
			unused = unused ? unused : p;
		else if (!strcmp(p->name, name))
			return p;
	}
	return unused;
}

unsigned agent_policies_count(const struct agent_ap *ap)
{
	unsigned n = 0, i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++)
		n += ap->policies[i].accepted != NULL;
	return n;
}

/* Those in force, or about to be. What waits or was refused the service knows from our reports. */
void agent_policies_headers(const struct agent_ap *ap, char *policies, size_t policies_size, char *match,
			    size_t match_size)
{
	int named = snprintf(policies, policies_size, "OAL-Policies:"), tagged = 0;
	char hash[65];
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++) {
		const struct agent_policy *p = &ap->policies[i];

		if (!p->accepted)
			continue;
		agent_hash_text(hash, bundle_head(p->accepted->bundle)->hash);
		named += snprintf(policies + named, policies_size - (size_t)named, " %s", p->name);
		tagged += snprintf(match + tagged, match_size - (size_t)tagged, "%s\"%s\"",
				   tagged ? ", " : "If-None-Match: ", hash);
	}
	if (!tagged) {
		match[0] = '\0';
		snprintf(policies, policies_size, "OAL-Policies;"); /* libcurl's way to send a header without a value */
	}
}
#endif
