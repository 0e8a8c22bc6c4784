#include "wire/batch_decode.h"

#include "wire/batch_fields.h"

#include <string.h>

const char *batch_reason_name(enum batch_reason r)
{
	static const char *const names[BATCH_N_REASONS] = {"ok", "oversized", "truncated", "malformed", "value_range",
	                                                   "unknown_revision", "key_mismatch", "time_range"};

	return (unsigned)r < BATCH_N_REASONS ? names[r] : "?";
}

static const struct oal_table *table_of(int topic, uint32_t field)
{
	unsigned i;

	for (i = 0; i < OAL_N_TABLES; i++)
		if (oal_tables[i].topic == topic && oal_tables[i].field == field)
			return &oal_tables[i];
	return NULL;
}

enum batch_reason batch_decode(struct batch_view *v, int topic, const uint8_t *bytes, size_t len, const char *key,
                               uint64_t now_us)
{
	const uint8_t *at = bytes, *const end = bytes + len;
	enum batch_reason r;
	struct wire_field f;
	unsigned i;

	memset(v, 0, sizeof *v);
	v->topic = topic;
	if (len > OAL_SETTING_MAX_BATCH_BYTES)
		return BATCH_OVERSIZED;
	for (;;) {
		struct batch_span *span = NULL;
		const struct oal_table *t;

		if ((r = next_field(&at, end, &f)))
			return r;
		if (!f.number)
			break;
		if (f.number == OAL_BATCH_HEADER)
			span = &v->header;
		else if (f.number == OAL_BATCH_FLOWS && topic == OAL_TOPIC_PACKETS)
			span = &v->flows;
		else if ((t = table_of(topic, f.number)))
			span = &v->tables[t->id];
		if (!span)
			continue;
		if (f.type != WIRE_BYTES || span->at)
			return BATCH_MALFORMED;
		*span = (struct batch_span){f.at, f.len};
	}
	if (!v->header.at)
		return BATCH_MALFORMED;
	if ((r = batch_check_header(v)))
		return r;
	if (v->flows.at && (r = batch_check_flows(v)))
		return r;
	for (i = 0; i < OAL_N_TABLES; i++)
		if (v->tables[i].at && (r = batch_check_table(v, &oal_tables[i])))
			return r;
	if (key && (strlen(key) != v->ap_id.len || memcmp(key, v->ap_id.at, v->ap_id.len)))
		return BATCH_KEY_MISMATCH;
	if (now_us && (v->t0_us > now_us + OAL_SETTING_MAX_FUTURE_US || v->t0_us + OAL_SETTING_MAX_PAST_US < now_us))
		return BATCH_TIME_RANGE;
	return BATCH_OK;
}
