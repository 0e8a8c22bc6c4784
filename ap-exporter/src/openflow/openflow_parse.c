/* Reading OpenFlow messages: bytes from outside. Names and numbers are those of the OpenFlow 1.3 specification. */
#include "openflow/openflow.h"

#include "openflow/openflow_numbers.h"

#include <errno.h>

enum {
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
};

static uint64_t read_number(const uint8_t *data, unsigned bytes)
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
		const size_t element = read_number(body + 2, 2), padded = (element + 7) / 8 * 8;

		if (element < 4 || element > len)
			return false;
		if (read_number(body, 2) == HELLO_VERSION_BITMAP)
			return element >= 8 && read_number(body + 4, 4) & 1 << VERSION_13;
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
	m->length = (uint32_t)read_number(data + 2, 2);
	m->xid = (uint32_t)read_number(data + 4, 4);
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
		m->error_type = (uint16_t)read_number(body, 2);
		m->error_code = (uint16_t)read_number(body + 2, 2);
		m->error = judge_error(m->error_type, m->error_code);
		return 1;
	case OPENFLOW_FLOW_REMOVED:
		if (body_len < 40)
			return -EPROTO;
		m->cookie = read_number(body, 8);
		m->expired = body[10] == REMOVED_HARD || body[10] == REMOVED_IDLE;
		m->packets = read_number(body + 24, 8);
		return 1;
	case OPENFLOW_MULTIPART_REPLY:
		if (body_len < 8)
			return -EPROTO;
		if (read_number(body, 2) != MULTIPART_AGGREGATE) { /* not asked for */
			m->type = UINT8_MAX;
			return 1;
		}
		if (body_len < 8 + 24)
			return -EPROTO;
		m->packets = read_number(body + 8, 8);
		return 1;
	default:
		return 1;
	}
}
