/* flow_hash.h: a keyed hash of a TCP connection's four parts, for tables of flows. Multilinear hashing (Lemire, Kaser:
 * "Strongly universal string hashing is fast", 2014): of any two connections that somebody chose without knowing the
 * key, any bits of the hash are equal by chance alone. So no client can pick ports that share a chain. */
#ifndef OAL_FLOW_HASH_H
#define OAL_FLOW_HASH_H

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

enum { FLOW_HASH_WORDS = 9 }; /* two addresses of up to four words, and the ports */

struct flow_hash_key {
	uint64_t add, multiply[FLOW_HASH_WORDS];
};

/* A key of its own for each table. Without the kernel's random numbers it stays what is there: a key, and no secret. */
static inline void flow_hash_key_new(struct flow_hash_key *key)
{
	unsigned i;

	key->add = 0;
	for (i = 0; i < FLOW_HASH_WORDS; i++)
		key->multiply[i] = 0x9e3779b97f4a7c15u * (2 * i + 1);
	(void)!getrandom(key, sizeof *key, GRND_NONBLOCK); /* 80 bytes: all or none */
}

static inline uint64_t flow_hash_address(const uint64_t *multiply, const uint8_t *addr, unsigned len)
{
	uint64_t sum = 0;
	uint32_t w;
	unsigned i;

	for (i = 0; i < len / 4; i++) {
		memcpy(&w, addr + 4 * i, 4);
		sum += multiply[i] * w;
	}
	return sum;
}

/* Addresses of `addr_len` bytes, 4 or 16. */
static inline uint32_t flow_hash(const struct flow_hash_key *key, const uint8_t *client, const uint8_t *server,
                                 unsigned addr_len, uint16_t client_port, uint16_t server_port)
{
	const uint32_t ports = (uint32_t)client_port << 16 | server_port;

	return (uint32_t)((key->add + key->multiply[8] * ports + flow_hash_address(key->multiply, client, addr_len) +
	                   flow_hash_address(key->multiply + 4, server, addr_len)) >> 32);
}

#endif
