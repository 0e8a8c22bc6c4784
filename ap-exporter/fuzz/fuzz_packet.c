/* fuzz_packet.c: frames of any bytes through the parser and on into a flow table.
 * Input: frames, each as link u8, caplen u8, more-on-the-wire u8, then caplen bytes. */
#include <stdlib.h>

#include "packet/flow_table.h"
#include "packet/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct flow_table t;
	uint64_t t_us = 1000000;

	if (flow_table_new(&t, 8))
		abort();
	while (size >= 3) {
		const uint32_t caplen = data[1] < size - 3 ? data[1] : (uint32_t)size - 3;
		enum packet_reason used;
		struct packet p;
		uint16_t i;

		if (!packet_parse(&p, (enum packet_link)(data[0] & 3), data + 3, caplen, caplen + 16u * data[2],
		                  &used)) {
			p.t_us = t_us += 1000;
			p.direction = data[0] >> 2 & 1;
			if (p.addr_len != 4 && p.addr_len != 16)
				abort();
			i = flow_find(&t, &p);
			if (i == FLOW_NONE) {
				if (flow_table_full(&t))
					flow_remove(&t, t.oldest);
				i = flow_add(&t, &p);
			}
			flow_packet(&t, i, &p);
			flow_delivery_kbps(&t.flows[i], p.direction, 100000);
			if (t.flows[i].dir[0].n_holes > FLOW_HOLES || t.flows[i].dir[1].n_holes > FLOW_HOLES)
				abort();
		}
		data += 3 + caplen;
		size -= 3 + caplen;
	}
	flow_table_free(&t);
	return 0;
}
