/* sender_flow.h: a TCP connection of this host: its two ends, and what its congestion control is called. */
#ifndef OAL_SENDER_FLOW_H
#define OAL_SENDER_FLOW_H

#include <stdint.h>

enum { SENDER_CONTROL = 16 }; /* bytes of a congestion control's name, its end included: TCP_CA_NAME_MAX */

struct sender_flow {
	uint8_t far[16], near[16]; /* IPv4 in the first four bytes */
	uint8_t addr_len; /* 4 or 16 */
	uint16_t far_port, near_port;
};

#endif
