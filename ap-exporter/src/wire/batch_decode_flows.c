/* The flow dictionary of a batch. */
#include "wire/batch_fields.h"

#include <string.h>

enum batch_reason batch_check_flows(struct batch_view *v)
{
	const uint8_t *at = v->flows.at, *const end = at + v->flows.len;
	uint32_t n[OAL_FLOWS_STATION_MAC + 1] = {0};
	struct batch_flow_cursor cursor;
	enum batch_reason r;
	struct wire_field f;
	unsigned i;
	uint32_t left;

	for (;;) {
		if ((r = next_field(&at, end, &f)))
			return r;
		if (!f.number)
			break;
		if (f.number > OAL_FLOWS_STATION_MAC)
			continue;
		if (f.type != WIRE_BYTES)
			return BATCH_MALFORMED;
		if (f.number == OAL_FLOWS_FLOW_ID) {
			if (f.len % 8)
				return BATCH_MALFORMED;
			n[f.number] += (uint32_t)(f.len / 8);
		} else if (f.number == OAL_FLOWS_CLIENT_ADDR || f.number == OAL_FLOWS_SERVER_ADDR) {
			if (f.len != 4 && f.len != 16)
				return BATCH_MALFORMED;
			n[f.number]++;
		} else if ((r = batch_count_varints(f.at, f.len, &n[f.number]))) {
			return r;
		}
	}
	for (i = OAL_FLOWS_CLIENT_ADDR; i <= OAL_FLOWS_STATION_MAC; i++)
		if (n[i] != n[OAL_FLOWS_FLOW_ID])
			return BATCH_MALFORMED;
	v->n_flows = n[OAL_FLOWS_FLOW_ID];
	batch_flows(&cursor, v);
	for (left = v->n_flows; left; left--) {
		static const uint64_t limit[4] = {UINT16_MAX, UINT16_MAX, UINT8_MAX, (UINT64_C(1) << 48) - 1};
		uint64_t value;

		batch_values_piece(&cursor.client);
		batch_values_piece(&cursor.server);
		for (i = 0; i < 4; i++)
			if (!batch_values_next(&cursor.numbers[i], &value) || value > limit[i])
				return BATCH_VALUE_RANGE;
		if (cursor.client.end - cursor.client.at != cursor.server.end - cursor.server.at)
			return BATCH_MALFORMED;
	}
	return BATCH_OK;
}

void batch_flows(struct batch_flow_cursor *c, const struct batch_view *v)
{
	unsigned i;

	c->view = v;
	c->left = v->n_flows;
	batch_values_begin(&c->ids, v->flows, OAL_FLOWS_FLOW_ID);
	batch_values_begin(&c->client, v->flows, OAL_FLOWS_CLIENT_ADDR);
	batch_values_begin(&c->server, v->flows, OAL_FLOWS_SERVER_ADDR);
	for (i = 0; i < 4; i++)
		batch_values_begin(&c->numbers[i], v->flows, OAL_FLOWS_CLIENT_PORT + i);
}

bool batch_next_flow(struct batch_flow_cursor *c, struct batch_flow *f)
{
	uint64_t n[4] = {0};
	unsigned i;

	if (!c->left)
		return false;
	c->left--;
	memset(f, 0, sizeof *f);
	while (c->ids.at == c->ids.end)
		if (!batch_values_piece(&c->ids))
			return false;
	f->flow_id = wire_fixed64(c->ids.at);
	c->ids.at += 8;
	if (!batch_values_piece(&c->client) || !batch_values_piece(&c->server))
		return false;
	f->addr_len = (uint8_t)(c->client.end - c->client.at);
	memcpy(f->client_addr, c->client.at, f->addr_len);
	memcpy(f->server_addr, c->server.at, f->addr_len);
	for (i = 0; i < 4; i++)
		batch_values_next(&c->numbers[i], &n[i]);
	f->client_port = (uint16_t)n[0];
	f->server_port = (uint16_t)n[1];
	f->protocol = (uint8_t)n[2];
	f->station_mac = n[3];
	return true;
}
