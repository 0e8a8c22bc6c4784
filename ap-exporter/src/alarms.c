#if defined HAVE_AGENT || defined HAVE_BPF
#include "alarms.h"

#include "base/json.h"
#include "base/log.h"
#include "collectors.h"
#include "control/controller.h"
#include "helper/helper.h"

#include <string.h>

enum { OF_HELPER = 1000 }; /* a source beyond the collectors */

/* One text a source: it may change while the alarm lasts, which is no news for the log. */
static void set_alarm(struct alarms *a, unsigned source, const char *text)
{
	unsigned i;

	for (i = 0; i < a->n && a->now[i].source != source; i++)
		;
	if (i == ALARMS_MOST)
		return;
	if (i == a->n) {
		a->n++;
		log_warn("alarm: %s", text);
	}
	a->now[i].source = source;
	a->now[i].fresh = true;
	memcpy(a->now[i].text, text, strlen(text) + 1);
}

void alarms_check(struct alarms *a, const struct controller *controller, const struct collectors *collectors)
{
	char text[ALARMS_TEXT] = "";
	unsigned i, kept = 0;
	int len;

	for (i = 0; i < a->n; i++)
		a->now[i].fresh = false;
	if (controller && controller_alarm(controller, text, sizeof text))
		set_alarm(a, 0, text);
	if (helper_lost())
		set_alarm(a, OF_HELPER,
			  "the helper has ended, and with it all that needs privileges: no window is lowered, and a "
			  "port that comes back is not tapped; restart ap-exporter");
	for (i = 0; (len = collectors_alarm(collectors, i, text, sizeof text)) >= 0; i++)
		if (len)
			set_alarm(a, 1 + i, text);
	for (i = 0; i < a->n; i++) {
		if (a->now[i].fresh)
			a->now[kept++] = a->now[i];
		else
			log_info("alarm over: %s", a->now[i].text);
	}
	a->n = kept;
}

void alarms_json(const struct alarms *a, struct json *j)
{
	json_add(j, ", \"alarms\": [");
	for (unsigned i = 0; i < a->n; i++) {
		json_add(j, "%s", i ? ", " : "");
		json_string(j, a->now[i].text);
	}
	json_add(j, "]");
}
#endif
