#include "control/law.h"

#include <stddef.h>
#include <string.h>

static const struct law_ops *const laws[] = { &law_fair_window, &law_direct, &law_mark, &law_backlog_cap };

const struct law_ops *law_find(const char *name)
{
	unsigned i;

	for (i = 0; i < sizeof laws / sizeof *laws; i++)
		if (!strcmp(laws[i]->name, name))
			return laws[i];
	return NULL;
}
