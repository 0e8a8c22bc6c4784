#ifdef HAVE_AGENT
#include "data_path.h"

#include "agent/ap.h"
#include "base/log.h"
#include "collectors.h"
#include "mark/mark.h"
#include "rewrite/rwnd.h"

#include <string.h>

enum { REASON = 512 };

static struct {
	struct data_path path;
	struct config_rwnd rwnd;
	struct config_mark mark;
} parked;

static bool wants_windows(const struct config *c)
{
	return c->n_agent && config_control(c) == OAL_POLICY_MODE_ENFORCE;
}

static bool wants_marks(const struct config *c)
{
	return c->n_agent && config_marks(c) == OAL_POLICY_MODE_ENFORCE;
}

int data_path_check(const struct config *c, char *err, size_t err_size)
{
	int ret = config_control(c) == OAL_POLICY_MODE_ENFORCE ? rwnd_check(&c->rwnd, err, err_size) : 0;

	if (!ret && config_marks(c) == OAL_POLICY_MODE_ENFORCE)
		ret = mark_check(&c->mark, err, err_size);
	return ret;
}

/* --- windows */

/* Alike but for the mode, which is no business of the data path. */
static bool alike(struct config_rwnd a, const struct config_rwnd *b)
{
	memcpy(a.mode, b->mode, sizeof a.mode);
	return !memcmp(&a, b, sizeof a);
}

static void park_windows(struct rwnd *rwnd, const struct config_rwnd *c)
{
	if (!rwnd)
		return;
	rwnd_release_all(rwnd);
	rwnd_close(parked.path.rwnd);
	parked.path.rwnd = rwnd;
	parked.rwnd = *c;
}

static struct rwnd *open_windows(const struct config_rwnd *c)
{
	struct rwnd *rwnd;
	char err[REASON];

	if (rwnd_open(&rwnd, c, err, sizeof err) >= 0)
		return rwnd;
	log_error("control goes on in shadow: %s", err);
	return NULL;
}

static struct rwnd *parked_windows(const struct config_rwnd *c)
{
	struct rwnd *rwnd = alike(parked.rwnd, c) ? parked.path.rwnd : NULL;

	if (rwnd)
		parked.path.rwnd = NULL;
	return rwnd;
}

/* --- marks */

static bool marks_alike(struct config_mark a, const struct config_mark *b)
{
	memcpy(a.mode, b->mode, sizeof a.mode);
	return !memcmp(&a, b, sizeof a);
}

static void park_marks(struct mark *mark, const struct config_mark *c)
{
	if (!mark)
		return;
	mark_release_all(mark);
	mark_close(parked.path.mark);
	parked.path.mark = mark;
	parked.mark = *c;
}

static struct mark *open_marks(const struct config_mark *c)
{
	struct mark *mark;
	char err[REASON];

	if (mark_open(&mark, c, err, sizeof err) >= 0)
		return mark;
	log_error("marks go on in shadow: %s", err);
	return NULL;
}

static struct mark *parked_marks(const struct config_mark *c)
{
	struct mark *mark = marks_alike(parked.mark, c) ? parked.path.mark : NULL;

	if (mark)
		parked.path.mark = NULL;
	return mark;
}

/* --- both */

void data_path_hold(const struct config *c)
{
	if (!collectors_live(c))
		return;
	if (wants_windows(c))
		park_windows(open_windows(&c->rwnd), &c->rwnd);
	if (wants_marks(c))
		park_marks(open_marks(&c->mark), &c->mark);
}

void data_path_park(struct data_path *d, const struct config *c, struct ap *ap)
{
	if (d->rwnd)
		ap_rwnd(ap, NULL);
	park_windows(d->rwnd, &c->rwnd);
	if (d->mark)
		ap_mark(ap, NULL);
	park_marks(d->mark, &c->mark);
	*d = (struct data_path){ 0 };
}

void data_path_open(struct data_path *d, const struct config *c, struct ap *ap, bool reload)
{
	if (!ap || !ap_controller(ap))
		return;
	if (wants_windows(c)) {
		d->rwnd = parked_windows(&c->rwnd);
		if (!d->rwnd && reload)
			d->rwnd = open_windows(&c->rwnd);
		ap_rwnd(ap, d->rwnd);
	}
	if (wants_marks(c)) {
		d->mark = parked_marks(&c->mark);
		if (!d->mark && reload)
			d->mark = open_marks(&c->mark);
		ap_mark(ap, d->mark);
	}
}

void data_path_close(struct data_path *d)
{
	rwnd_close(d->rwnd);
	mark_close(d->mark);
}
#endif
