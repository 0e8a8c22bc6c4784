/* The kinds of action that there are, as effects.h takes them. */
#ifdef HAVE_AGENT
#include "effect/effects.h"
#include "mark/mark.h"
#include "mark/mark_stations.h"
#include "rewrite/rwnd.h"
#include "rewrite/rwnd_clamps.h"

static int set_window(void *self, const void *key, uint64_t bytes, uint32_t ttl_ms)
{
	return rwnd_set(self, key, (uint32_t)bytes, ttl_ms);
}

static int release_window(void *self, const void *key)
{
	return rwnd_release(self, key);
}

static void release_windows(void *self)
{
	rwnd_release_all(self);
}

static void poll_windows(void *self, uint64_t now_us)
{
	rwnd_poll(self, now_us);
}

static void windows_json(void *self, struct json *j)
{
	rwnd_json(self, j);
}

static enum oal_rewrite_backend windows_backend(const void *self)
{
	return rwnd_backend(self);
}

const struct effects_ops effects_rwnd = {
	.kind = OAL_ACTION_KIND_RWND,
	.meet = rwnd_meet,
	.set = set_window,
	.release = release_window,
	.release_all = release_windows,
	.poll = poll_windows,
	.json = windows_json,
	.backend = windows_backend,
};

static int set_marks(void *self, const void *key, uint64_t marks, uint32_t ttl_ms)
{
	return mark_set(self, key, (uint8_t)marks, ttl_ms);
}

static int release_marks(void *self, const void *key)
{
	return mark_release(self, key);
}

static void release_all_marks(void *self)
{
	mark_release_all(self);
}

static void poll_marks(void *self, uint64_t now_us)
{
	mark_poll(self, now_us);
}

static void marks_json(void *self, struct json *j)
{
	mark_json(self, j);
}

static enum oal_rewrite_backend marks_backend(const void *self)
{
	return mark_backend(self);
}

const struct effects_ops effects_mark = {
	.kind = OAL_ACTION_KIND_MARK,
	.meet = mark_meet,
	.set = set_marks,
	.release = release_marks,
	.release_all = release_all_marks,
	.poll = poll_marks,
	.json = marks_json,
	.backend = marks_backend,
};
#endif
