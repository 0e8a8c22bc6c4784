#include "ship/sink.h"

const struct sink_ops *const sink_all[] = {
#ifdef HAVE_KAFKA
	&sink_kafka,
#endif
	&sink_file, NULL,
};
