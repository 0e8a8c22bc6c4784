#ifdef HAVE_AGENT
/* The kill switch, as the push service has it: in force at once, kept on flash for the next start. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/state_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 16 }; /* bytes: "on" or "off" and a newline; a longer file is not ours */

bool agent_killed(const struct agent_ap *ap)
{
	return agent_flags_killed(inference_flags(ap->policies[0].inference));
}

static void set_killed(struct agent_ap *ap, bool off)
{
	atomic_store_explicit(&inference_flags(ap->policies[0].inference)->killed, off, memory_order_release);
}

/* At once; the file follows. */
void agent_kill_switch_read(struct agent_ap *ap, enum http_control control)
{
	const bool off = control == HTTP_CONTROL_OFF;

	if (control == HTTP_CONTROL_UNSAID || off == agent_killed(ap))
		return;
	set_killed(ap, off);
	ap->view.counts.control_changes++;
	ap->control_unsaved = ap->shared->config->state_dir[0];
	ap->control_save_at_us = 0;
	log_warn("AP %s: control is %s by the push service's kill switch", ap->ap_id, off ? "off" : "on again");
}

uint64_t agent_kill_switch_run(struct agent_ap *ap, uint64_t now_us)
{
	const char *folder = ap->shared->config->state_dir;
	const char *text = agent_killed(ap) ? "off\n" : "on\n";
	int r;

	if (!ap->control_unsaved)
		return UINT64_MAX;
	if (now_us < ap->control_save_at_us)
		return ap->control_save_at_us;
	r = state_file_write(folder, ap->ap_id, "control", text, strlen(text));
	ap->control_unsaved = r;
	if (!r)
		return UINT64_MAX;
	if (!ap->view.counts.store_errors++)
		log_warn("AP %s: cannot keep the kill switch in %s: %s; trying again every second", ap->ap_id, folder,
			 strerror(-r));
	agent_note_error(ap, "cannot keep the kill switch in %s: %s", folder, strerror(-r));
	ap->control_save_at_us = now_us + SECOND_US;
	return ap->control_save_at_us;
}

/* A file that is there and does not say `on` means off: that can only take power away, and lasts until the service's
 * first answer. */
void agent_kill_switch_restore(struct agent_ap *ap)
{
	const char *folder = ap->shared->config->state_dir;
	uint8_t *bytes = NULL;
	size_t len = 0;
	const int r = state_file_read(folder, ap->ap_id, "control", FILE_MAX, &bytes, &len);
	const bool on = !r && len == 3 && !memcmp(bytes, "on\n", 3), off = !r && len == 4 && !memcmp(bytes, "off\n", 4);

	free(bytes);
	if (r == -ENOENT || on)
		return;
	set_killed(ap, true);
	if (off) {
		log_warn("AP %s: control is off, as the push service's kill switch had it", ap->ap_id);
		return;
	}
	ap->view.counts.store_errors++;
	agent_note_error(ap,
			 "the kill switch kept in %s cannot be read: %s; control is off until the service is reached",
			 folder, r ? strerror(-r) : "neither on nor off");
	log_warn("AP %s: %s", ap->ap_id, ap->view.last_error);
}

void agent_kill_switch_inherit(struct agent_ap *ap, const struct agent_ap *earlier)
{
	const bool off = agent_killed(earlier);

	if (off == agent_killed(ap))
		return; /* as on flash, if it was kept there */
	set_killed(ap, off);
	ap->control_unsaved = ap->shared->config->state_dir[0];
}
#endif
