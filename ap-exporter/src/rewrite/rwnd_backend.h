/* rwnd_backend.h: the action behind a struct rwnd, for tests and benches that look into a backend. */
#ifndef OAL_RWND_BACKEND_H
#define OAL_RWND_BACKEND_H

#include "rewrite/rwnd.h"

struct rwnd {
	struct action action;
};

#endif
