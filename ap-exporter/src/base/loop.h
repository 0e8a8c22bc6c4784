/* The tick, at whole periods of the monotonic clock, and file descriptors that are served between ticks. */
#ifndef OAL_LOOP_H
#define OAL_LOOP_H

#include <stdint.h>

struct loop;

struct tick {
	uint64_t due_us;   /* monotonic time at which the tick was due */
	uint32_t missed;   /* ticks that were due before it and were not served */
	uint32_t late_us;  /* how long after due_us it started; after a rest: after the rest's end, in its last tick */
	uint32_t more;     /* ticks that are due already, and come next without a wait */
};

typedef void (*loop_fd_cb)(void *ctx, int fd);

/* A tick every `period_us`, from now on. NULL and errno on failure. */
struct loop *loop_new(uint32_t period_us);
void loop_free(struct loop *l);

/* Calls cb(ctx, fd) whenever fd is readable. 0 or a negative errno. */
int loop_add(struct loop *l, int fd, loop_fd_cb cb, void *ctx);
void loop_remove(struct loop *l, int fd);

/* Serves descriptors until a tick is due. 1: a tick, in *t; 0: loop_stop was called; negative errno. */
int loop_wait(struct loop *l, struct tick *t);
/* The next wait lasts for `ticks` ticks (1: as always) unless a descriptor is to be served: what is due by then comes
 * tick by tick. While it rests nothing is lost by a tick that is served late: none counts as missed, but those that are
 * more than LOOP_OWED. */
void loop_rest(struct loop *l, uint32_t ticks);
enum { LOOP_OWED = 50 }; /* ticks served one after the other, at the most */
void loop_stop(struct loop *l);

/* The pure part, for tests: `expired` periods have passed; the last of them was due at the result's due_us. */
struct tick loop_account(uint64_t last_due_us, uint64_t expired, uint32_t period_us, uint64_t now_us);
/* Likewise of a rest of `rest` periods: the first tick to serve, and how many follow it. */
struct tick loop_account_rest(uint64_t last_due_us, uint64_t expired, uint32_t period_us);

#endif
