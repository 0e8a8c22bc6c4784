/* rwnd_backend.h: what a backend of rwnd.h sees of it. Only the backends, the front and their tests include this. */
#ifndef OAL_RWND_BACKEND_H
#define OAL_RWND_BACKEND_H

#include "rewrite/rwnd.h"

struct rwnd {
	const struct rwnd_ops *ops;
	void *self; /* the backend's own: made by its open(), which leaves nothing behind when it fails; ended by its
		       close() */
};

/* A backend is called with a flow that rwnd_check_clamp() let pass, with `bytes` at or above its floor, and with no
 * more flows at once than max_flows. It gets release() for a clamp whose time is over too, at the next rwnd_poll(). */

#endif
