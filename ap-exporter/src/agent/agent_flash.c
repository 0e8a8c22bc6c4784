#ifdef HAVE_AGENT
/* The bundle in force of each policy is kept on flash, for the next start. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/state_file.h"
#include "base/version.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands before `.bundle`: that of rwnd-fair has the AP's name alone. */
enum { STEM = sizeof ((struct agent_ap *)0)->ap_id + 1 + BUNDLE_MAX_POLICY };

static void stem_of(char out[STEM], const struct agent_ap *ap, const char *policy)
{
	const bool first = !strcmp(policy, agent_rwnd_fair);

	snprintf(out, STEM, "%s%s%s", ap->ap_id, first ? "" : "@", first ? "" : policy);
}

/* A verified bundle goes to its policy's place. False: it was refused. */
static bool attach(struct agent_ap *ap, struct bundle *b, const char *policy, uint8_t *bytes, size_t len)
{
	const struct bundle_head *h = bundle_head(b);
	struct agent_policy *p = agent_policy_place(ap, policy);
	const char *why = "the program cannot run here";
	enum oal_bundle_reason reason;
	struct candidate *c;

	if (strcmp(h->of_policy, policy)) {
		reason = OAL_BUNDLE_REASON_WRONG_TARGET;
		why = "it is of another policy than its file";
	} else if (!p) {
		reason = OAL_BUNDLE_REASON_NO_MEMORY;
		why = "no place for another policy";
	} else {
		reason = agent_bundle_candidate(p, b, OAL_BUNDLE_STATE_RESTORED, len, &c);
	}
	if (reason) {
		agent_bundle_refuse(ap, h, NULL, reason, len, why);
		bundle_free(b);
		return false;
	}
	log_info(OAL_HERE " %s: bundle of policy %s, serial %" PRId64 " (%s version %u) restored from %s", ap->ap_id,
		 policy, h->serial, h->model, h->version, ap->shared->config->state_dir);
	agent_bundle_accept(p, c, bytes, len);
	return true;
}

static void restore(struct agent_ap *ap, const char *policy)
{
	const char *folder = ap->shared->config->state_dir;
	enum oal_bundle_reason reason;
	struct bundle_head head = {0};
	char stem[STEM];
	struct bundle *b;
	uint8_t *bytes;
	size_t len;
	int r;

	stem_of(stem, ap, policy);
	r = state_file_read(folder, stem, "bundle", OAL_SETTING_MAX_BUNDLE_BYTES, &bytes, &len);
	if (r == -ENOENT)
		return;
	if (r) {
		ap->view.counts.store_errors++;
		agent_note_error(ap, "cannot read the bundle of policy %s kept in %s: %s", policy, folder,
				 strerror(-r));
		log_warn(OAL_HERE " %s: %s", ap->ap_id, ap->view.last_error);
		return;
	}
	b = agent_bundle_verify(ap, bytes, len, NULL, &reason, &head);
	if (b && attach(ap, b, policy, bytes, len))
		return;
	free(bytes);
	if (strcmp(policy, agent_rwnd_fair)) /* its own is replaced by the next; of another there may be none */
		state_file_remove(folder, stem, "bundle");
}

/* Enough to clear away what no place is left for. */
enum { MOST_FILES = 4 * BUNDLE_MAX_POLICIES };

void agent_flash_restore(struct agent_ap *ap)
{
	char first[STEM], names[MOST_FILES][BUNDLE_MAX_POLICY + 1];
	unsigned n, i;

	restore(ap, agent_rwnd_fair);
	snprintf(first, sizeof first, "%s@", ap->ap_id);
	n = state_file_list(ap->shared->config->state_dir, first, "bundle", names[0], sizeof names[0], MOST_FILES);
	for (i = 0; i < n; i++)
		restore(ap, names[i]);
}

static void save(struct agent_ap *ap, struct agent_policy *p, uint64_t now_us)
{
	const char *folder = ap->shared->config->state_dir;
	char stem[STEM];
	int r;

	if (!p->unsaved || !folder[0] || !p->accepted || p->accepted->status.bundle != p->in_force)
		return;
	p->saved_us = now_us;
	stem_of(stem, ap, p->name);
	r = state_file_write(folder, stem, "bundle", p->accepted_bytes, p->accepted_len);
	if (!r) {
		p->unsaved = false;
		ap->view.counts.stores++;
		return;
	}
	if (!ap->view.counts.store_errors++)
		log_warn(OAL_HERE " %s: cannot keep the bundle in %s: %s; trying again every %u s", ap->ap_id, folder,
			 strerror(-r), ap->shared->config->store_interval_s);
	agent_note_error(ap, "cannot keep the bundle in %s: %s", folder, strerror(-r));
}

void agent_flash_save(struct agent_ap *ap, uint64_t now_us)
{
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES; i++)
		save(ap, &ap->policies[i], now_us);
}

void agent_flash_remove(struct agent_ap *ap, const struct agent_policy *p)
{
	const char *folder = ap->shared->config->state_dir;
	char stem[STEM];
	int r;

	if (!folder[0])
		return;
	stem_of(stem, ap, p->name);
	r = state_file_remove(folder, stem, "bundle");
	if (!r)
		return;
	ap->view.counts.store_errors++;
	agent_note_error(ap, "cannot remove the bundle of policy %s from %s: %s", p->name, folder, strerror(-r));
	log_warn(OAL_HERE " %s: %s", ap->ap_id, ap->view.last_error);
}

uint64_t agent_flash_run(struct agent_ap *ap, uint64_t now_us)
{
	const uint64_t interval_us = ap->shared->config->store_interval_s * SECOND_US;
	uint64_t next_us = UINT64_MAX;
	unsigned i;

	for (i = 0; i < BUNDLE_MAX_POLICIES && ap->shared->config->state_dir[0]; i++) {
		struct agent_policy *p = &ap->policies[i];
		uint64_t at_us = p->saved_us ? p->saved_us + interval_us : 0;

		if (!p->unsaved)
			continue;
		if (now_us >= at_us) {
			save(ap, p, now_us);
			at_us = p->unsaved ? now_us + SECOND_US : UINT64_MAX;
		}
		next_us = at_us < next_us ? at_us : next_us;
	}
	return next_us;
}
#endif
