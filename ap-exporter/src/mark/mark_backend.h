/* mark_backend.h: the action behind a struct mark, for tests and benches that look into a backend. */
#ifndef OAL_MARK_BACKEND_H
#define OAL_MARK_BACKEND_H

#include "mark/mark.h"

struct mark {
	struct action action;
};

#endif
