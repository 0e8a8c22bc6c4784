#include "rewrite/action.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { REASON = 512 }; /* bytes of why one backend cannot work */

const struct action_ops *action_choose(const struct action_choice *c, bool later, int *ret, char *err, size_t err_size)
{
	const bool any = !strcmp(c->named, "auto");
	char why[REASON] = "";
	size_t used = 0;

	*ret = -EOPNOTSUPP;
	if (err_size)
		err[0] = '\0';
	for (unsigned i = 0; c->backends[i]; i++) {
		if (!any && strcmp(c->backends[i]->name, c->named))
			continue;
		*ret = c->backends[i]->check(c->config, why, sizeof why);
		if (!*ret || (later && !any && (*ret == -ENOENT || *ret == -ECONNREFUSED)))
			return c->backends[i];
		if (used < err_size)
			used += (size_t)snprintf(err + used, err_size - used, "%s%s: %s", used ? "; " : "",
						 c->backends[i]->name, why);
	}
	if (!used)
		snprintf(err, err_size,
			 "this ap-exporter was built without the backend '%s' of %s: use the package with it, or set "
			 "option 'backend'",
			 c->named, c->of);
	return NULL;
}
