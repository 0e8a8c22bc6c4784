/* fuzz_pcap.c: any bytes as a pcap or pcapng file, its packets through the parser. */
#include <stdlib.h>

#include "packet/packet.h"
#include "packet/pcap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pcap pcap;
	struct pcap_packet k;

	if (pcap_open(&pcap, data, size))
		return 0;
	while (pcap_next(&pcap, &k)) {
		enum packet_reason used;
		struct packet p;

		if (k.bytes < data || k.bytes + k.caplen > data + size)
			abort();
		packet_parse(&p, k.link, k.bytes, k.caplen, k.wirelen, &used);
	}
	return 0;
}
