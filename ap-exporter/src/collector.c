#include "collector.h"

/* Packets before everything that counts them; addresses before the packets of the next tick. */
const struct collector_ops *const collector_all[] = {
	&collect_packet, &collect_nl80211, &collect_qdisc, &collect_beacon, &collect_neigh, &collect_replay, NULL,
};
