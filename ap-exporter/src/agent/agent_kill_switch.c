#ifdef HAVE_AGENT
/* The kill switch, as the push service has it: in force at once, kept on flash for the next start. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/state_file.h"
#include "base/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "on" or "off", the policies that are off by themselves, each after a space, and a newline; a longer file is not
 * ours. */
enum { FILE_MAX = 8 + OAL_SETTING_MAX_KILLED_POLICIES * (BUNDLE_MAX_POLICY + 1) };

bool agent_killed(const struct agent_ap *ap)
{
	return agent_flags_killed(inference_flags(ap->policies[0].inference));
}

static void set_killed(struct agent_ap *ap, bool off)
{
	atomic_store_explicit(&inference_flags(ap->policies[0].inference)->killed, off, memory_order_release);
}

/* The names of a list as numbers, at most as many as flags hold. */
static unsigned numbers(const char *list, uint32_t out[OAL_SETTING_MAX_KILLED_POLICIES])
{
	char name[BUNDLE_MAX_POLICY + 1];
	unsigned n = 0;

	while (*list && n < OAL_SETTING_MAX_KILLED_POLICIES) {
		const size_t len = strcspn(list, " ");

		snprintf(name, sizeof name, "%.*s", (int)len, list);
		out[n++] = agent_flags_name(name);
		list += len;
		list += *list == ' ';
	}
	return n;
}

static bool among(uint32_t name, const uint32_t *names, unsigned n)
{
	while (n--)
		if (names[n] == name)
			return true;
	return false;
}

/* Whoever was off and stays off is off all the time. */
static void set_killed_policies(struct agent_ap *ap, const char *list)
{
	struct agent_flags *f = inference_flags(ap->policies[0].inference);
	uint32_t wanted[OAL_SETTING_MAX_KILLED_POLICIES], had[OAL_SETTING_MAX_KILLED_POLICIES];
	const unsigned n = numbers(list, wanted);

	for (unsigned i = 0; i < OAL_SETTING_MAX_KILLED_POLICIES; i++) {
		had[i] = atomic_load_explicit(&f->killed_policies[i], memory_order_relaxed);
		if (had[i] && !among(had[i], wanted, n))
			atomic_store_explicit(&f->killed_policies[i], had[i] = 0, memory_order_release);
	}
	for (unsigned i = 0, place = 0; i < n; i++) {
		if (among(wanted[i], had, OAL_SETTING_MAX_KILLED_POLICIES))
			continue;
		while (had[place])
			place++;
		atomic_store_explicit(&f->killed_policies[place], had[place] = wanted[i], memory_order_release);
	}
	snprintf(ap->view.killed_policies, sizeof ap->view.killed_policies, "%s", list);
}

void agent_kill_switch_header(const struct agent_ap *ap, char *buf, size_t size)
{
	if (ap->view.killed_policies[0])
		snprintf(buf, size, "OAL-Killed: %s", ap->view.killed_policies);
	else
		snprintf(buf, size, "OAL-Killed;"); /* libcurl's way to send a header without a value */
}

/* At once; the file follows. A service that says nothing of single policies knows of none: then all are off, or none
 * is. */
bool agent_kill_switch_read(struct agent_ap *ap, const struct http_answer *a)
{
	const bool off = a->control == HTTP_CONTROL_OFF;
	const char *killed = a->killed_said ? a->killed : "";
	bool turned, others;

	if (a->control == HTTP_CONTROL_UNSAID)
		return false;
	if (a->killed_unclear) {
		agent_note_error(ap, "the service's list of policies that are off cannot be read; what was off stays "
				     "off");
		if (!off)
			return false; /* `off` of all counts, whatever the list says */
		killed = ap->view.killed_policies;
	}
	turned = off != agent_killed(ap);
	others = strcmp(killed, ap->view.killed_policies) != 0;
	if (!turned && !others)
		return false;
	if (others) {
		set_killed_policies(ap, killed);
		log_warn(OAL_HERE " %s: %s%s by the push service's kill switch", ap->ap_id,
			 *killed ? "off by themselves are policies " : "no policy is off by itself", killed);
	}
	if (turned) {
		set_killed(ap, off);
		log_warn(OAL_HERE " %s: control is %s by the push service's kill switch", ap->ap_id,
			 off ? "off" : "on again");
	}
	ap->view.counts.control_changes++;
	ap->control_unsaved = ap->shared->config->state_dir[0];
	ap->control_save_at_us = 0;
	return true;
}

uint64_t agent_kill_switch_run(struct agent_ap *ap, uint64_t now_us)
{
	const char *folder = ap->shared->config->state_dir;
	char text[FILE_MAX];
	int r;

	if (!ap->control_unsaved)
		return UINT64_MAX;
	if (now_us < ap->control_save_at_us)
		return ap->control_save_at_us;
	snprintf(text, sizeof text, "%s%s%s\n", agent_killed(ap) ? "off" : "on", ap->view.killed_policies[0] ? " " : "",
		 ap->view.killed_policies);
	r = state_file_write(folder, ap->ap_id, "control", text, strlen(text));
	ap->control_unsaved = r;
	if (!r)
		return UINT64_MAX;
	if (!ap->view.counts.store_errors++)
		log_warn(OAL_HERE " %s: cannot keep the kill switch in %s: %s; trying again every second", ap->ap_id,
			 folder, strerror(-r));
	agent_note_error(ap, "cannot keep the kill switch in %s: %s", folder, strerror(-r));
	ap->control_save_at_us = now_us + SECOND_US;
	return ap->control_save_at_us;
}

enum kept { UNREADABLE, ON, OFF };

/* Takes over which policies are off by themselves, if all of the file can be read. */
static enum kept read_file(struct agent_ap *ap, const uint8_t *bytes, size_t len)
{
	char text[FILE_MAX];
	struct http_answer a = { 0 };
	size_t word;

	if (!len || len >= sizeof text || bytes[len - 1] != '\n' || memchr(bytes, '\0', len))
		return UNREADABLE;
	memcpy(text, bytes, len);
	text[len - 1] = '\0';
	word = strcspn(text, " ");
	if (text[word]) {
		http_header_killed(&a, text + word + 1);
		if (a.killed_unclear || !a.killed[0])
			return UNREADABLE;
		text[word] = '\0';
	}
	if (strcmp(text, "on") && strcmp(text, "off"))
		return UNREADABLE;
	set_killed_policies(ap, a.killed);
	return text[1] == 'n' ? ON : OFF;
}

/* A file that is there and does not say `on` means off: that can only take power away, and lasts until the service's
 * first answer. */
void agent_kill_switch_restore(struct agent_ap *ap)
{
	const char *folder = ap->shared->config->state_dir;
	uint8_t *bytes = NULL;
	size_t len = 0;
	const int r = state_file_read(folder, ap->ap_id, "control", FILE_MAX, &bytes, &len);
	const enum kept kept = r ? UNREADABLE : read_file(ap, bytes, len);

	free(bytes);
	if (r == -ENOENT)
		return;
	if (ap->view.killed_policies[0])
		log_warn(OAL_HERE " %s: off by themselves are policies %s, as the push service's kill switch had it",
			 ap->ap_id, ap->view.killed_policies);
	if (kept == ON)
		return;
	set_killed(ap, true);
	if (kept == OFF) {
		log_warn(OAL_HERE " %s: control is off, as the push service's kill switch had it", ap->ap_id);
		return;
	}
	ap->view.counts.store_errors++;
	agent_note_error(ap,
			 "the kill switch kept in %s cannot be read: %s; control is off until the service is reached",
			 folder, r ? strerror(-r) : "neither on nor off");
	log_warn(OAL_HERE " %s: %s", ap->ap_id, ap->view.last_error);
}

void agent_kill_switch_inherit(struct agent_ap *ap, const struct agent_ap *earlier)
{
	const bool off = agent_killed(earlier);

	if (off == agent_killed(ap) && !strcmp(ap->view.killed_policies, earlier->view.killed_policies))
		return; /* as on flash, if it was kept there */
	set_killed(ap, off);
	set_killed_policies(ap, earlier->view.killed_policies);
	ap->control_unsaved = ap->shared->config->state_dir[0];
}
#endif
