/* Writing OpenFlow messages. Names and numbers are those of the OpenFlow 1.3 specification, and of Open vSwitch's
 * extensions where they begin with NX. */
#include "openflow/openflow.h"

#include "openflow/openflow_numbers.h"

#include <string.h>

enum {
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
	NX_MARK_CE = 0x4f42,
	NX_IN_PORT = 0xfff8, /* the port that the packet came from */
	HARD_TIMEOUT_S = 1, /* the least there is: no effect's time to live is longer */
};
#define ANY UINT32_C(0xffffffff)
#define MARK UINT32_C(0x4f414c) /* in a flow's register: the others are meant now */

/* Class, field and length of a match field. */
#define OXM(field, length) (UINT32_C(0x80000000) | (field) << 9 | (length))
enum {
	ETH_DST = 3,
	ETH_TYPE = 5,
	IP_PROTO = 10,
	IPV4_SRC = 11,
	IPV4_DST = 12,
	TCP_SRC = 13,
	TCP_DST = 14,
	IPV6_SRC = 26,
	IPV6_DST = 27
};
/* A register. Each kind of flow has its own, so that a packet meets both. */
#define NXM_REG(number) (UINT32_C(0x00010000) | (number) << 9 | 4)

static const struct {
	uint32_t reg;
	uint16_t priority;
} of_kind[OPENFLOW_KINDS] = {
	[OPENFLOW_CLAMP] = { NXM_REG(15), OPENFLOW_PRIORITY },
	[OPENFLOW_MARKS] = { NXM_REG(14), OPENFLOW_PRIORITY + 1 },
};

/* No message comes near OPENFLOW_MESSAGE_MAX, which the tests check. */

struct out {
	uint8_t *data;
	size_t len;
};

static void write_number(struct out *o, unsigned bytes, uint64_t value)
{
	while (bytes--)
		o->data[o->len++] = (uint8_t)(value >> 8 * bytes);
}

static void write_bytes(struct out *o, const uint8_t *bytes, size_t len)
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

	write_number(&o, 1, VERSION_13);
	write_number(&o, 1, type);
	write_number(&o, 2, 0);
	write_number(&o, 4, xid);
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

	write_number(&o, 2, HELLO_VERSION_BITMAP);
	write_number(&o, 2, 8);
	write_number(&o, 4, 1 << VERSION_13);
	return end(&o);
}

size_t openflow_set_config(uint8_t *data, uint32_t xid)
{
	struct out o = begin(data, OPENFLOW_SET_CONFIG, xid);

	write_number(&o, 2, 0);
	write_number(&o, 2,
		     1); /* miss_send_len: with 0, Open vSwitch says nothing by itself on its management socket */
	return end(&o);
}

size_t openflow_set_async(uint8_t *data, uint32_t xid)
{
	struct out o = begin(data, OPENFLOW_SET_ASYNC, xid);

	write_number(&o, 8, 0); /* packets in: none */
	write_number(&o, 8, 0); /* port status: none */
	write_number(&o, 8,
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
static void write_tcp_match(struct out *o, bool v6)
{
	write_number(o, 4, OXM(ETH_TYPE, 2));
	write_number(o, 2, v6 ? 0x86dd : 0x0800);
	write_number(o, 4, OXM(IP_PROTO, 1));
	write_number(o, 1, 6);
}

static void write_clamp_match(struct out *o, const struct openflow_clamp *c)
{
	const bool v6 = c->addr_len == 16;

	write_tcp_match(o, v6);
	write_number(o, 4, v6 ? OXM(IPV6_SRC, 16) : OXM(IPV4_SRC, 4));
	write_bytes(o, c->source, v6 ? 16 : 4);
	write_number(o, 4, v6 ? OXM(IPV6_DST, 16) : OXM(IPV4_DST, 4));
	write_bytes(o, c->destination, v6 ? 16 : 4);
	write_number(o, 4, OXM(TCP_SRC, 2));
	write_number(o, 2, c->source_port);
	write_number(o, 4, OXM(TCP_DST, 2));
	write_number(o, 2, c->destination_port);
}

static size_t begin_match(struct out *o)
{
	const size_t at = o->len;

	write_number(o, 2, MATCH_OXM);
	write_number(o, 2, 0);
	return at;
}

static void end_match(struct out *o, size_t at)
{
	set_length(o, at + 2, o->len - at); /* without the padding that follows */
	write_number(o, (8 - (o->len - at) % 8) % 8, 0);
}

static void write_match(struct out *o, const struct openflow_rule *r)
{
	const size_t at = begin_match(o);

	write_number(o, 4, of_kind[r->kind].reg);
	write_number(o, 4, 0);
	if (r->kind == OPENFLOW_CLAMP) {
		write_clamp_match(o, &r->clamp);
	} else {
		write_number(o, 4, OXM(ETH_DST, OPENFLOW_MAC));
		write_bytes(o, r->marks.mac, OPENFLOW_MAC);
	}
	end_match(o, at);
}

static void write_nx_action(struct out *o, uint16_t length, uint16_t subtype)
{
	write_number(o, 2, ACTION_EXPERIMENTER);
	write_number(o, 2, length);
	write_number(o, 4, NX_VENDOR);
	write_number(o, 2, subtype);
}

static void write_rewrite(struct out *o, uint16_t raw, uint16_t ttl_ms)
{
	write_nx_action(o, 16, NX_REWRITE_RWND);
	write_number(o, 2, raw);
	write_number(o, 2, ttl_ms);
	write_number(o, 2, 0);
}

static void write_mark_ce(struct out *o, const struct openflow_marks *m, uint16_t ttl_ms)
{
	write_nx_action(o, 24, NX_MARK_CE);
	write_number(o, 2, ttl_ms);
	write_number(o, 4, m->interval_us);
	write_number(o, 4, m->since);
	write_number(o, 1, m->marks);
	write_number(o, 3, 0);
}

static void write_action(struct out *o, const struct openflow_rule *r, uint16_t ttl_ms)
{
	if (r->kind == OPENFLOW_CLAMP)
		write_rewrite(o, r->clamp.raw, ttl_ms);
	else
		write_mark_ce(o, &r->marks, ttl_ms);
}

/* On to the flows of the other kind, and the bridge's own. */
static void write_other_flows(struct out *o, enum openflow_kind kind)
{
	write_nx_action(o, 24, NX_REG_LOAD);
	write_number(o, 2, 31); /* from bit 0, 32 bits */
	write_number(o, 4, of_kind[kind].reg);
	write_number(o, 8, MARK);
	write_nx_action(o, 16, NX_RESUBMIT_TABLE);
	write_number(o, 2, NX_IN_PORT);
	write_number(o, 1, 0); /* table */
	write_number(o, 3, 0);
}

struct flow_mod {
	uint64_t cookie, cookie_mask;
	uint8_t table, command;
	uint16_t hard_timeout_s, priority, flags;
};

static void write_flow_mod(struct out *o, const struct flow_mod *m)
{
	write_number(o, 8, m->cookie);
	write_number(o, 8, m->cookie_mask);
	write_number(o, 1, m->table);
	write_number(o, 1, m->command);
	write_number(o, 2, 0); /* no idle timeout */
	write_number(o, 2, m->hard_timeout_s);
	write_number(o, 2, m->priority);
	write_number(o, 4, ANY); /* no packet waits for this */
	write_number(o, 4, ANY);
	write_number(o, 4, ANY);
	write_number(o, 2, m->flags);
	write_number(o, 2, 0);
}

static size_t begin_actions(struct out *o)
{
	const size_t at = o->len;

	write_number(o, 2, INSTRUCTION_APPLY_ACTIONS);
	write_number(o, 2, 0);
	write_number(o, 4, 0);
	return at;
}

static void end_actions(struct out *o, size_t at)
{
	set_length(o, at + 2, o->len - at);
}

size_t openflow_add(uint8_t *data, uint32_t xid, uint64_t cookie, const struct openflow_rule *r, uint16_t ttl_ms)
{
	struct out o = begin(data, OPENFLOW_FLOW_MOD, xid);
	size_t at;

	write_flow_mod(&o, &(struct flow_mod){
		.cookie = cookie,
		.command = FLOW_ADD,
		.hard_timeout_s = HARD_TIMEOUT_S,
		.priority = of_kind[r->kind].priority,
		.flags = FLAG_SEND_FLOW_REMOVED,
	});
	write_match(&o, r);
	at = begin_actions(&o);
	write_action(&o, r, ttl_ms);
	write_other_flows(&o, r->kind);
	end_actions(&o, at);
	return end(&o);
}

size_t openflow_delete(uint8_t *data, uint32_t xid, uint64_t cookie, const struct openflow_rule *r)
{
	struct out o = begin(data, OPENFLOW_FLOW_MOD, xid);

	write_flow_mod(&o, &(struct flow_mod){
		.cookie = cookie,
		.cookie_mask = UINT64_MAX,
		.command = FLOW_DELETE_STRICT,
		.priority = of_kind[r->kind].priority,
	});
	write_match(&o, r);
	return end(&o);
}

size_t openflow_delete_all(uint8_t *data, uint32_t xid, uint64_t cookie, enum openflow_kind kind, bool v6)
{
	static const struct openflow_rule least[OPENFLOW_KINDS] = {
		[OPENFLOW_CLAMP] = { OPENFLOW_CLAMP, .clamp = { .raw = UINT16_MAX } },
		[OPENFLOW_MARKS] = { OPENFLOW_MARKS, .marks = { .marks = 1 } },
	};
	struct out o = begin(data, OPENFLOW_FLOW_MOD, xid);
	size_t at;

	write_flow_mod(&o,
		     &(struct flow_mod){
			     .cookie = cookie, .cookie_mask = UINT64_MAX, .table = TABLE_ALL, .command = FLOW_DELETE });
	at = begin_match(&o);
	if (kind == OPENFLOW_CLAMP)
		write_tcp_match(&o, v6);
	end_match(&o, at);
	at = begin_actions(&o);
	write_action(&o, &least[kind], 1);
	end_actions(&o, at);
	return end(&o);
}

size_t openflow_aggregate(uint8_t *data, uint32_t xid, uint64_t cookie)
{
	struct out o = begin(data, OPENFLOW_MULTIPART_REQUEST, xid);

	write_number(&o, 2, MULTIPART_AGGREGATE);
	write_number(&o, 2, 0);
	write_number(&o, 4, 0);
	write_number(&o, 1, TABLE_ALL);
	write_number(&o, 3, 0);
	write_number(&o, 4, ANY);
	write_number(&o, 4, ANY);
	write_number(&o, 4, 0);
	write_number(&o, 8, cookie);
	write_number(&o, 8, UINT64_MAX);
	end_match(&o, begin_match(&o));
	return end(&o);
}
