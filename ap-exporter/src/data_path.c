#ifdef HAVE_AGENT
#include "data_path.h"

#include "base/log.h"
#include "collectors.h"
#include "rewrite/rwnd.h"

#include <string.h>

static struct {
	struct rwnd *rwnd;
	struct config_rwnd config;
} parked;

/* Alike but for the mode, which is no business of the data path. */
static bool alike(struct config_rwnd a, const struct config_rwnd *b)
{
	memcpy(a.mode, b->mode, sizeof a.mode);
	return !memcmp(&a, b, sizeof a);
}

void data_path_park(struct rwnd *rwnd, const struct config_rwnd *c)
{
	if (!rwnd)
		return;
	rwnd_release_all(rwnd);
	rwnd_close(parked.rwnd);
	parked.rwnd = rwnd;
	parked.config = *c;
}

struct rwnd *data_path_parked(const struct config_rwnd *c)
{
	struct rwnd *rwnd = alike(parked.config, c) ? parked.rwnd : NULL;

	if (rwnd)
		parked.rwnd = NULL;
	return rwnd;
}

bool data_path_wanted(const struct config *c)
{
	return c->n_agent && config_control(c) == OAL_POLICY_MODE_ENFORCE;
}

void data_path_hold(const struct config *c)
{
	struct rwnd *rwnd;
	char err[512];

	if (!data_path_wanted(c) || !collectors_live(c))
		return;
	if (rwnd_open(&rwnd, &c->rwnd, err, sizeof err) < 0)
		log_error("control goes on in shadow: %s", err);
	else
		data_path_park(rwnd, &c->rwnd);
}
#endif
