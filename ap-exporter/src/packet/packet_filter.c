#include "packet/packet_filter.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

/* Jump targets that are known only once the program's length is. */
enum { ACCEPT = 250, REJECT = 251, NEXT_TAG = 252 };

static unsigned emit(struct sock_filter *p, unsigned n, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	p[n] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
	return n + 1;
}

unsigned packet_filter_build(struct sock_filter *program, uint32_t snaplen)
{
	const uint16_t half = BPF_LD | BPF_H | BPF_ABS, byte = BPF_LD | BPF_B | BPF_ABS, eq = BPF_JMP | BPF_JEQ | BPF_K;
	unsigned n = 0, from;

	/* The kernel has taken the outermost tag out of the frame where the driver did; others are still in it. */
	for (unsigned tags = 0; tags <= 2; tags++) {
		uint32_t type_at = 12 + 4 * tags, ip = type_at + 2;

		from = n;
		n = emit(program, n, half, type_at, 0, 0);
		n = emit(program, n, eq, ETH_P_IP, 0, 2);
		n = emit(program, n, byte, ip + 9, 0, 0);
		n = emit(program, n, eq, IPPROTO_TCP, ACCEPT, REJECT);
		n = emit(program, n, eq, ETH_P_IPV6, 0, 5);
		n = emit(program, n, byte, ip + 6, 0, 0);
		n = emit(program, n, eq, IPPROTO_TCP, ACCEPT, 0);
		/* Extension headers may lead to TCP: the parser follows them. */
		n = emit(program, n, eq, IPPROTO_HOPOPTS, ACCEPT, 0);
		n = emit(program, n, eq, IPPROTO_ROUTING, ACCEPT, 0);
		n = emit(program, n, eq, IPPROTO_DSTOPTS, ACCEPT, REJECT);
		n = emit(program, n, eq, ETH_P_8021Q, NEXT_TAG, 0);
		n = emit(program, n, eq, ETH_P_8021AD, NEXT_TAG, REJECT);
		for (unsigned i = from; i < n; i++) {
			if (program[i].jt == NEXT_TAG)
				program[i].jt = (uint8_t)(tags < 2 ? n - i - 1 : REJECT);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		if (program[i].jt == ACCEPT)
			program[i].jt = (uint8_t)(n - i - 1);
		else if (program[i].jt == REJECT)
			program[i].jt = (uint8_t)(n + 1 - i - 1);
		if (program[i].jf == REJECT)
			program[i].jf = (uint8_t)(n + 1 - i - 1);
	}
	n = emit(program, n, BPF_RET | BPF_K, snaplen, 0, 0);
	return emit(program, n, BPF_RET | BPF_K, 0, 0, 0);
}
