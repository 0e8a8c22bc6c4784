/* flow_hash.h: a hash of a TCP connection's four parts, for tables of flows. */
#ifndef OAL_FLOW_HASH_H
#define OAL_FLOW_HASH_H

#include <stdint.h>
#include <string.h>

static inline uint32_t flow_hash_mix(uint32_t h, const uint8_t *addr, unsigned len)
{
	uint32_t w;
	unsigned i;

	for (i = 0; i < len; i += 4) {
		memcpy(&w, addr + i, 4);
		h = (h ^ w) * 0x9e3779b1u;
		h ^= h >> 15;
	}
	return h;
}

/* Addresses of `addr_len` bytes, 4 or 16. */
static inline uint32_t flow_hash(const uint8_t *client, const uint8_t *server, unsigned addr_len, uint16_t client_port,
                                 uint16_t server_port)
{
	const uint32_t ports = (uint32_t)client_port << 16 | server_port;

	return flow_hash_mix(flow_hash_mix(ports * 0x85ebca6bu, client, addr_len), server, addr_len);
}

#endif
