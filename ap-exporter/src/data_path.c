#ifdef HAVE_AGENT
#include "data_path.h"

#include "agent/ap.h"
#include "base/log.h"
#include "collectors.h"
#ifdef HAVE_CONGESTION
#include "congestion/congestion.h"
#include "destination/destinations.h"
#endif
#include "mark/mark.h"
#include "rewrite/rwnd.h"

#include <string.h>

enum { REASON = 512 };

static struct {
	struct data_path path;
	struct config_rwnd rwnd;
	struct config_mark mark;
	struct config_congestion congestion;
} parked;

static bool wants_windows(const struct config *c)
{
	return c->n_agent && config_control(c) == OAL_POLICY_MODE_ENFORCE;
}

static bool wants_marks(const struct config *c)
{
	return c->n_agent && config_marks(c) == OAL_POLICY_MODE_ENFORCE;
}

#ifdef HAVE_CONGESTION
static bool wants_choices(const struct config *c)
{
	return c->n_agent && config_congestion(c) == OAL_POLICY_MODE_ENFORCE;
}
#endif

int data_path_check(const struct config *c, char *err, size_t err_size)
{
	int ret = config_control(c) == OAL_POLICY_MODE_ENFORCE ? rwnd_check(&c->rwnd, err, err_size) : 0;

	if (!ret && config_marks(c) == OAL_POLICY_MODE_ENFORCE)
		ret = mark_check(&c->mark, err, err_size);
#ifdef HAVE_CONGESTION
	if (!ret && wants_choices(c))
		ret = congestion_check(c->congestion.cgroup, err, err_size);
#endif
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

/* --- choices, of a host */

#ifdef HAVE_CONGESTION
static void close_choices(struct congestion *c)
{
	if (c)
		congestion_close(c);
}

static void park_choices(struct congestion *congestion, const struct config_congestion *c)
{
	if (!congestion)
		return;
	congestion_release_all(congestion);
	close_choices(parked.path.congestion);
	parked.path.congestion = congestion;
	parked.congestion = *c;
}

static struct congestion *open_choices(const struct config_congestion *c)
{
	struct congestion *congestion;
	char err[REASON];

	if (congestion_open(&congestion, c->cgroup, false, err, sizeof err) >= 0)
		return congestion;
	log_error("congestion controls go on in shadow until the next start: %s", err);
	return NULL;
}

/* One for the same cgroup; the rest of its section is no business of the data path. */
static struct congestion *parked_choices(const struct config_congestion *c)
{
	struct congestion *congestion = strcmp(parked.congestion.cgroup, c->cgroup) ? NULL : parked.path.congestion;

	if (congestion)
		parked.path.congestion = NULL;
	return congestion;
}

static void hold_choices(const struct config *c)
{
	if (wants_choices(c))
		park_choices(open_choices(&c->congestion), &c->congestion);
}

static void take_choices(struct data_path *d, const struct config *c, struct ap *ap)
{
	if (d->congestion && ap_destinations(ap))
		destinations_set_with(ap_destinations(ap), NULL);
	park_choices(d->congestion, &c->congestion);
}

static void give_choices(struct data_path *d, const struct config *c, struct ap *ap, bool reload)
{
	if (!wants_choices(c) || !ap_destinations(ap))
		return;
	d->congestion = parked_choices(&c->congestion);
	if (!d->congestion && reload)
		d->congestion = open_choices(&c->congestion);
	destinations_set_with(ap_destinations(ap), d->congestion);
}
#else
static void close_choices(struct congestion *c) {}
static void hold_choices(const struct config *c) {}
static void take_choices(struct data_path *d, const struct config *c, struct ap *ap) {}
static void give_choices(struct data_path *d, const struct config *c, struct ap *ap, bool reload) {}
#endif

/* --- all */

void data_path_hold(const struct config *c)
{
	if (!collectors_live(c))
		return;
	if (wants_windows(c))
		park_windows(open_windows(&c->rwnd), &c->rwnd);
	if (wants_marks(c))
		park_marks(open_marks(&c->mark), &c->mark);
	hold_choices(c);
}

void data_path_park(struct data_path *d, const struct config *c, struct ap *ap)
{
	if (d->rwnd)
		ap_rwnd(ap, NULL);
	park_windows(d->rwnd, &c->rwnd);
	if (d->mark)
		ap_mark(ap, NULL);
	park_marks(d->mark, &c->mark);
	take_choices(d, c, ap);
	*d = (struct data_path){ 0 };
}

void data_path_open(struct data_path *d, const struct config *c, struct ap *ap, bool reload)
{
	if (!ap)
		return;
	give_choices(d, c, ap, reload);
	if (!ap_controller(ap))
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
	close_choices(d->congestion);
}
#endif
