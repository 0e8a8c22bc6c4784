#ifdef HAVE_AGENT
/* The bundle in force is kept on flash, for the next start. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void agent_flash_restore(struct agent_ap *ap)
{
	const char *folder = ap->shared->config->state_dir;
	enum oal_bundle_reason reason;
	struct bundle_head head = {0};
	struct candidate *c;
	struct bundle *b;
	uint8_t *bytes;
	size_t len;
	int r = state_file_read(folder, ap->ap_id, "bundle", OAL_SETTING_MAX_BUNDLE_BYTES, &bytes, &len);

	if (r == -ENOENT)
		return;
	if (r) {
		ap->view.counts.store_errors++;
		agent_note_error(ap, "cannot read the bundle kept in %s: %s", folder, strerror(-r));
		log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
		return;
	}
	b = agent_bundle_verify(ap, bytes, len, "", &reason, &head);
	if (b && (reason = agent_bundle_candidate(ap, b, OAL_BUNDLE_STATE_RESTORED, len, &c))) {
		agent_bundle_refuse(ap, &head, "", reason, len, "the program cannot run here");
		bundle_free(b);
		b = NULL;
	}
	if (!b) {
		free(bytes);
		return;
	}
	agent_bundle_accept(ap, c, bytes, len);
	log_info("AP %s: bundle of serial %" PRId64 " (%s version %u) restored from %s", ap->ap_id, head.serial,
		 head.model, head.version, folder);
}

void agent_flash_save(struct agent_ap *ap, uint64_t now_us)
{
	const char *folder = ap->shared->config->state_dir;
	int r;

	if (!ap->unsaved || !folder[0] || !ap->accepted || ap->accepted->status.bundle != ap->in_force)
		return;
	ap->saved_us = now_us;
	r = state_file_write(folder, ap->ap_id, "bundle", ap->accepted_bytes, ap->accepted_len);
	if (!r) {
		ap->unsaved = false;
		ap->view.counts.stores++;
		return;
	}
	if (!ap->view.counts.store_errors++)
		log_warn("AP %s: cannot keep the bundle in %s: %s; trying again every %u s", ap->ap_id, folder,
			 strerror(-r), ap->shared->config->store_interval_s);
	agent_note_error(ap, "cannot keep the bundle in %s: %s", folder, strerror(-r));
}

uint64_t agent_flash_run(struct agent_ap *ap, uint64_t now_us)
{
	const uint64_t at_us = ap->saved_us ? ap->saved_us + ap->shared->config->store_interval_s * SECOND_US : 0;

	if (!ap->unsaved || !ap->shared->config->state_dir[0])
		return UINT64_MAX;
	if (now_us < at_us)
		return at_us;
	agent_flash_save(ap, now_us);
	return ap->unsaved ? now_us + SECOND_US : UINT64_MAX;
}
#endif
