#include "model/bundle_law.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "oal_policy.h"

enum { LAW_NAME = 1, LAW_SUBJECT, LAW_ACTION, LAW_VALUES };
enum { MAX_SUBJECTS = 3 };

#define MAX_VALUE (INT64_C(1) << 40)

struct known {
	const char *name, *subjects[MAX_SUBJECTS];
	unsigned n_values;
	bool needs_class; /* else it goes by what it measures, and a bundle may have no model */
};

static const struct known laws[] = { { "fair_window", { "flow" }, 0, true },
                                     { "direct", { "flow", "ap", "destination" }, BUNDLE_LAW_VALUES, true },
                                     { "mark", { "station" }, 0, false },
                                     { "backlog_cap", { "flow" }, 0, false } };
static const struct known actions[] = { { "rwnd", { "flow", "ap" }, 0, false },
                                        { "mark", { "station" }, 0, false },
                                        { "cc", { "destination" }, 0, false } };

const struct bundle_law bundle_law_fair_window = { "fair_window", "flow", "rwnd", true, 0, { 0 } };

static bool is(const char *name, const struct pb_field *f)
{
	return name && strlen(name) == f->len && !memcmp(name, f->at, f->len);
}

/* The one of that name which goes with that subject; NULL: there is none. `*subject` is then the known one. */
static const struct known *find(const struct known *list, unsigned n, const struct pb_field *name,
                                const struct pb_field *of, const char **subject)
{
	unsigned i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < MAX_SUBJECTS; k++)
			if (is(list[i].name, name) && is(list[i].subjects[k], of)) {
				*subject = list[i].subjects[k];
				return &list[i];
			}
	return NULL;
}

int bundle_law_read(struct bundle_law *law, const struct part *part, char *err, size_t err_size)
{
	const struct pb_field *const f = part->fields, *const subject = &f[LAW_SUBJECT];
	struct pb_list values = bundle_part_list(part, PART_LAW, LAW_VALUES);
	const struct known *known, *action;
	int64_t most;
	unsigned i;

	memset(law, 0, sizeof *law);
	known = find(laws, sizeof laws / sizeof laws[0], &f[LAW_NAME], subject, &law->subject);
	if (!known) {
		snprintf(err, err_size, "law %.*s on %.*s is not known", (int)f[LAW_NAME].len, f[LAW_NAME].at,
		         (int)subject->len, subject->at);
		return -EINVAL;
	}
	action = find(actions, sizeof actions / sizeof actions[0], &f[LAW_ACTION], subject, &law->subject);
	if (!action) {
		snprintf(err, err_size, "action %.*s on %s is not known", (int)f[LAW_ACTION].len, f[LAW_ACTION].at,
		         law->subject);
		return -EINVAL;
	}
	law->name = known->name;
	law->action = action->name;
	law->needs_class = known->needs_class;
	if (f[LAW_VALUES].n != known->n_values) {
		snprintf(err, err_size, "law %s has %u values; %u", law->name, f[LAW_VALUES].n, known->n_values);
		return -EINVAL;
	}
	law->n_values = known->n_values;
	most = strcmp(law->action, "cc") ? MAX_VALUE : OAL_N_CONGESTION_CONTROLS - 1;
	for (i = 0; i < law->n_values; i++) {
		law->values[i] = pb_list_next(&values);
		if (law->values[i] < 0 || law->values[i] > most) {
			snprintf(err, err_size, "law %s: value %lld; 0 to %lld", law->name, (long long)law->values[i],
			         (long long)most);
			return -EINVAL;
		}
	}
	return 0;
}

bool bundle_law_of_rows(const struct bundle_law *law)
{
	return !strcmp(law->subject, "destination");
}
