#include "rewrite/openflow.h"

#include <errno.h>
#include <string.h>

/* Names and numbers are those of the OpenFlow 1.3 specification, and of Open vSwitch's extensions where they begin with
 * NX. */
enum {
	VERSION_13 = 4,
	HELLO_VERSION_BITMAP = 1,
	MULTIPART_AGGREGATE = 2,
	FLOW_ADD = 0,
	FLOW_DELETE = 3,
	FLOW_DELETE_STRICT = 4,
	FLAG_SEND_FLOW_REMOVED = 1,
	TABLE_ALL = 0xff,
	INSTRUCTION_APPLY_ACTIONS = 4,
	MATCH_OXM = 1,
	ACTION_EXPERIMENTER = 0xffff,
	NX_VENDOR = 0x2320,
	NX_REG_LOAD = 7,
	NX_RESUBMIT_TABLE = 14,
	NX_REWRITE_RWND = 0x4f41,
	NX_IN_PORT = 0xfff8, /* the port that the packet came from */
	REMOVED_IDLE = 0,
	REMOVED_HARD = 1,
	ERROR_HELLO_FAILED = 0,
	ERROR_BAD_REQUEST = 1,
	ERROR_BAD_ACTION = 2,
	ERROR_FLOW_MOD_FAILED = 5,
	BAD_VERSION = 0,
	BAD_ACTION_TYPE = 0,
	BAD_ACTION_EXPERIMENTER = 3,
	BAD_ACTION_EXPERIMENTER_TYPE = 4,
	FLOW_MOD_TABLE_FULL = 1,
	HARD_TIMEOUT_S = 1, /* the least there is: RWND_MAX_TTL_MS is not longer */
};
#define ANY UINT32_C(0xffffffff)
#define MARK UINT32_C(0x4f414c) /* in register 15: the bridge's own flows are meant now */

/* Class, field and length of a match field. */
#define OXM(field, length) (UINT32_C(0x80000000) | (field) << 9 | (length))
enum {
	ETH_TYPE = 5,
	IP_PROTO = 10,
	IPV4_SRC = 11,
	IPV4_DST = 12,
	TCP_SRC = 13,
	TCP_DST = 14,
	IPV6_SRC = 26,
	IPV6_DST = 27
};
#define NXM_REG15 (UINT32_C(0x00010000) | 15 << 9 | 4)

/* --- writing; no message comes near OPENFLOW_MESSAGE_MAX, which the tests check */

struct out {
	uint8_t *data;
	size_t len;
};

static void put(struct out *o, unsigned bytes, uint64_t value)
{
	while (bytes--)
		o->data[o->len++] = (uint8_t)(value >> 8 * bytes);
}

static void put_bytes(struct out *o, const uint8_t *bytes, size_t len)
{
	memcpy(o->data + o->len, bytes, len);
	o->len += len;
}

/* A length that was not known when its place was written. */
static void set_length(struct out *o, size_t at, size_t length)
{
	o->data[at] = (uint8_t)(length >> 8);
	o->data[at + 1] = (uint8_t)length;
}

static struct out begin(uint8_t *data, enum openflow_type type, uint32_t xid)
{
	struct out o = { .data = data };

	put(&o, 1, VERSION_13);
	put(&o, 1, type);
	put(&o, 2, 0);
	put(&o, 4, xid);
	return o;
}

static size_t end(struct out *o)
{
	set_length(o, 2, o->len);
	return o->len;
}

size_t openflow_hello(uint8_t *data, uint32_t xid)
{
	struct out o = begin(data, OPENFLOW_HELLO, xid);

	put(&o, 2, HELLO_VERSION_BITMAP);
	put(&o, 2, 8);
	put(&o, 4, 1 << VERSION_13);
	return end(&o);
}

size_t openflow_set_config(uint8_t *data, uint32_t xid)
{
	struct out o = begin(data, OPENFLOW_SET_CONFIG, xid);

	put(&o, 2, 0);
	put(&o, 2, 1); /* miss_send_len: with 0, Open vSwitch says nothing by itself on its management socket */
	return end(&o);
}

size_t openflow_set_async(uint8_t *data, uint32_t xid)
{
	struct out o = begin(data, OPENFLOW_SET_ASYNC, xid);

	put(&o, 8, 0); /* packets in: none */
	put(&o, 8, 0); /* port status: none */
	put(&o, 8,
	    UINT64_C(0x0000000700000007)); /* flows removed: idle, hard timeout, deleted; as master and as slave */
	return end(&o);
}

static size_t header_alone(uint8_t *data, enum openflow_type type, uint32_t xid)
{
	struct out o = begin(data, type, xid);

	return end(&o);
}

size_t openflow_barrier(uint8_t *data, uint32_t xid)
{
	return header_alone(data, OPENFLOW_BARRIER_REQUEST, xid);
}

size_t openflow_echo_request(uint8_t *data, uint32_t xid)
{
	return header_alone(data, OPENFLOW_ECHO_REQUEST, xid);
}

size_t openflow_echo_reply(uint8_t *data, uint32_t xid)
{
	return header_alone(data, OPENFLOW_ECHO_REPLY, xid);
}

/* All TCP of one kind of address: around rewrite_rwnd the switch wants to see that much. */
static void put_tcp_match(struct out *o, bool v6)
{
	put(o, 4, OXM(ETH_TYPE, 2));
	put(o, 2, v6 ? 0x86dd : 0x0800);
	put(o, 4, OXM(IP_PROTO, 1));
	put(o, 1, 6);
}

static void put_flow_match(struct out *o, const struct rwnd_flow *f)
{
	const bool v6 = f->addr_len == 16;

	put(o, 4, NXM_REG15);
	put(o, 4, 0);
	put_tcp_match(o, v6);
	put(o, 4, v6 ? OXM(IPV6_SRC, 16) : OXM(IPV4_SRC, 4));
	put_bytes(o, f->client_addr, v6 ? 16 : 4);
	put(o, 4, v6 ? OXM(IPV6_DST, 16) : OXM(IPV4_DST, 4));
	put_bytes(o, f->server_addr, v6 ? 16 : 4);
	put(o, 4, OXM(TCP_SRC, 2));
	put(o, 2, f->client_port);
	put(o, 4, OXM(TCP_DST, 2));
	put(o, 2, f->server_port);
}

static size_t begin_match(struct out *o)
{
	const size_t at = o->len;

	put(o, 2, MATCH_OXM);
	put(o, 2, 0);
	return at;
}

static void end_match(struct out *o, size_t at)
{
	set_length(o, at + 2, o->len - at); /* without the padding that follows */
	put(o, (8 - (o->len - at) % 8) % 8, 0);
}

static void put_nx_action(struct out *o, uint16_t length, uint16_t subtype)
{
	put(o, 2, ACTION_EXPERIMENTER);
	put(o, 2, length);
	put(o, 4, NX_VENDOR);
	put(o, 2, subtype);
}

static void put_rewrite(struct out *o, uint16_t raw, uint16_t ttl_ms)
{
	put_nx_action(o, 16, NX_REWRITE_RWND);
	put(o, 2, raw);
	put(o, 2, ttl_ms);
	put(o, 2, 0);
}

static void put_own_flows(struct out *o)
{
	put_nx_action(o, 24, NX_REG_LOAD);
	put(o, 2, 31); /* from bit 0, 32 bits */
	put(o, 4, NXM_REG15);
	put(o, 8, MARK);
	put_nx_action(o, 16, NX_RESUBMIT_TABLE);
	put(o, 2, NX_IN_PORT);
	put(o, 1, 0); /* table */
	put(o, 3, 0);
}

struct flow_mod {
	uint64_t cookie, cookie_mask;
	uint8_t table, command;
	uint16_t hard_timeout_s, priority, flags;
};

static void put_flow_mod(struct out *o, const struct flow_mod *m)
{
	put(o, 8, m->cookie);
	put(o, 8, m->cookie_mask);
	put(o, 1, m->table);
	put(o, 1, m->command);
	put(o, 2, 0); /* no idle timeout */
	put(o, 2, m->hard_timeout_s);
	put(o, 2, m->priority);
	put(o, 4, ANY); /* no packet waits for this */
	put(o, 4, ANY);
	put(o, 4, ANY);
	put(o, 2, m->flags);
	put(o, 2, 0);
}

static size_t begin_actions(struct out *o)
{
	const size_t at = o->len;

	put(o, 2, INSTRUCTION_APPLY_ACTIONS);
	put(o, 2, 0);
	put(o, 4, 0);
	return at;
}

static void end_actions(struct out *o, size_t at)
{
	set_length(o, at + 2, o->len - at);
}

size_t openflow_add(uint8_t *data, uint32_t xid, uint64_t cookie, const struct rwnd_flow *f, uint16_t raw,
		    uint16_t ttl_ms)
{
	struct out o = begin(data, OPENFLOW_FLOW_MOD, xid);
	size_t at;

	put_flow_mod(&o, &(struct flow_mod){
		.cookie = cookie,
		.command = FLOW_ADD,
		.hard_timeout_s = HARD_TIMEOUT_S,
		.priority = OPENFLOW_PRIORITY,
		.flags = FLAG_SEND_FLOW_REMOVED,
	});
	at = begin_match(&o);
	put_flow_match(&o, f);
	end_match(&o, at);
	at = begin_actions(&o);
	put_rewrite(&o, raw, ttl_ms);
	put_own_flows(&o);
	end_actions(&o, at);
	return end(&o);
}

size_t openflow_delete(uint8_t *data, uint32_t xid, uint64_t cookie, const struct rwnd_flow *f)
{
	struct out o = begin(data, OPENFLOW_FLOW_MOD, xid);
	size_t at;

	put_flow_mod(&o, &(struct flow_mod){
		.cookie = cookie,
		.cookie_mask = UINT64_MAX,
		.command = FLOW_DELETE_STRICT,
		.priority = OPENFLOW_PRIORITY,
	});
	at = begin_match(&o);
	put_flow_match(&o, f);
	end_match(&o, at);
	return end(&o);
}

size_t openflow_delete_all(uint8_t *data, uint32_t xid, uint64_t cookie, bool v6)
{
	struct out o = begin(data, OPENFLOW_FLOW_MOD, xid);
	size_t at;

	put_flow_mod(&o,
		     &(struct flow_mod){
			     .cookie = cookie, .cookie_mask = UINT64_MAX, .table = TABLE_ALL, .command = FLOW_DELETE });
	at = begin_match(&o);
	put_tcp_match(&o, v6);
	end_match(&o, at);
	at = begin_actions(&o);
	put_rewrite(&o, UINT16_MAX, 1);
	end_actions(&o, at);
	return end(&o);
}

size_t openflow_aggregate(uint8_t *data, uint32_t xid, uint64_t cookie)
{
	struct out o = begin(data, OPENFLOW_MULTIPART_REQUEST, xid);

	put(&o, 2, MULTIPART_AGGREGATE);
	put(&o, 2, 0);
	put(&o, 4, 0);
	put(&o, 1, TABLE_ALL);
	put(&o, 3, 0);
	put(&o, 4, ANY);
	put(&o, 4, ANY);
	put(&o, 4, 0);
	put(&o, 8, cookie);
	put(&o, 8, UINT64_MAX);
	end_match(&o, begin_match(&o));
	return end(&o);
}

/* --- reading */

static uint64_t get(const uint8_t *data, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *data++;
	return value;
}

/* A switch that lists its versions speaks those; one that does not, all up to that of its header. */
static bool hello_speaks_13(const uint8_t *body, size_t len, uint8_t version)
{
	while (len >= 4) {
		const size_t element = get(body + 2, 2), padded = (element + 7) / 8 * 8;

		if (element < 4 || element > len)
			return false;
		if (get(body, 2) == HELLO_VERSION_BITMAP)
			return element >= 8 && get(body + 4, 4) & 1 << VERSION_13;
		if (padded >= len)
			break;
		body += padded;
		len -= padded;
	}
	return version >= VERSION_13;
}

static enum openflow_error judge_error(unsigned type, unsigned code)
{
	if (type == ERROR_HELLO_FAILED || (type == ERROR_BAD_REQUEST && code == BAD_VERSION))
		return OPENFLOW_ERROR_VERSION;
	if (type == ERROR_BAD_ACTION &&
	    (code == BAD_ACTION_TYPE || code == BAD_ACTION_EXPERIMENTER || code == BAD_ACTION_EXPERIMENTER_TYPE))
		return OPENFLOW_ERROR_ACTION;
	if (type == ERROR_FLOW_MOD_FAILED && code == FLOW_MOD_TABLE_FULL)
		return OPENFLOW_ERROR_FULL;
	return OPENFLOW_ERROR_OTHER;
}

int openflow_parse(struct openflow_message *m, const uint8_t *data, size_t len)
{
	const uint8_t *body = data + OPENFLOW_HEADER;
	size_t body_len;

	*m = (struct openflow_message){ 0 };
	if (len < OPENFLOW_HEADER)
		return 0;
	m->type = data[1];
	m->length = (uint32_t)get(data + 2, 2);
	m->xid = (uint32_t)get(data + 4, 4);
	if (m->length < OPENFLOW_HEADER)
		return -EPROTO;
	if (len < m->length)
		return 0;
	body_len = m->length - OPENFLOW_HEADER;
	switch (m->type) {
	case OPENFLOW_HELLO:
		m->speaks_13 = hello_speaks_13(body, body_len, data[0]);
		return 1;
	case OPENFLOW_ERROR:
		if (body_len < 4)
			return -EPROTO;
		m->error_type = (uint16_t)get(body, 2);
		m->error_code = (uint16_t)get(body + 2, 2);
		m->error = judge_error(m->error_type, m->error_code);
		return 1;
	case OPENFLOW_FLOW_REMOVED:
		if (body_len < 40)
			return -EPROTO;
		m->cookie = get(body, 8);
		m->expired = body[10] == REMOVED_HARD || body[10] == REMOVED_IDLE;
		m->packets = get(body + 24, 8);
		return 1;
	case OPENFLOW_MULTIPART_REPLY:
		if (body_len < 8)
			return -EPROTO;
		if (get(body, 2) != MULTIPART_AGGREGATE) { /* not asked for */
			m->type = UINT8_MAX;
			return 1;
		}
		if (body_len < 8 + 24)
			return -EPROTO;
		m->packets = get(body + 8, 8);
		return 1;
	default:
		return 1;
	}
}
