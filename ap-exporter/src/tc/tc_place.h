/* tc_place.h: a pair of tc programs, and the ports that they may be on. Part of what keeps privileges (helper/serve.h);
 * tc_place_query() takes none. */
#ifndef OAL_TC_PLACE_H
#define OAL_TC_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TC_MAX_PORTS = 8, /* an AP has rarely more Wi-Fi ports that carry clients */
	TC_PORT_NAME = 16, /* bytes: IFNAMSIZ */
};

struct tc_place {
	uint32_t priority; /* among a port's filters */
	int up_fd, down_fd; /* programs: at ingress, from clients; at egress, to them */
	uint32_t up_id, down_id;
	unsigned n;
	struct tc_place_port {
		char name[TC_PORT_NAME];
		unsigned index; /* where the programs are; 0: nowhere */
		bool egress; /* the program at egress too: not where an `ingress` qdisc was there before us */
	} ports[TC_MAX_PORTS];
};

/* Puts both programs on a port, in place of what is there. 0 or negative errno: -ENODEV if there is no such port. */
int tc_place_attach(struct tc_place *, unsigned port);
/* Takes them off, if they are there, and the hooks with the last filter where this process made them. */
void tc_place_detach(struct tc_place *, unsigned port);
/* Id of the program in our place on the port `index`: 0 if none. Another exporter's may have taken it. */
uint32_t tc_place_query(uint32_t priority, unsigned index, bool egress);

#endif
