#include "replay/play_pcap.h"

#include "pipeline/pipeline.h"
#include "replay/player_state.h"

void play_pcap_packets(struct player *p, uint64_t before_us)
{
	struct pcap_packet k;

	for (;;) {
		enum packet_reason reason, used;

		if (p->has_ahead) {
			if (p->ahead.t_us >= before_us)
				return;
			pipeline_packet(p->pipeline, &p->ahead);
			p->has_ahead = false;
		}
		if (!pcap_next(&p->pcap, &k))
			return;
		reason = packet_parse(&p->ahead, k.link, k.bytes, k.caplen, k.wirelen, &used);
		if (reason) {
			pipeline_skipped_frame(p->pipeline, reason);
			continue;
		}
		p->ahead.t_us = k.t_us + p->shift_us;
		p->ahead.direction = p->net->addr_len ? pcap_direction(p->net, &p->ahead) : PIPELINE_DIRECTION_UNKNOWN;
		{
			const uint16_t src = p->ahead.src_port, dst = p->ahead.dst_port;

			p->ahead.src_port = player_port(p, src, dst);
			p->ahead.dst_port = player_port(p, dst, src);
		}
		p->has_ahead = true;
	}
}
