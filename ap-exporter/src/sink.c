#include "sink.h"

const struct sink_ops *const sink_all[] = { &sink_kafka, &sink_file, NULL };
