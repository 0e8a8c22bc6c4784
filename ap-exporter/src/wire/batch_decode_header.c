/* The header of a batch: its fields, the dictionary of names, the ticks that were missed. */
#include "wire/batch_fields.h"
#include "wire/utf8.h"

enum batch_reason batch_check_header(struct batch_view *v)
{
	const uint8_t *at = v->header.at, *const end = at + v->header.len;
	uint64_t u[OAL_HEADER_CLOCK_ERROR_US + 1] = {0}; /* varint fields, by number */
	uint32_t missed_ticks = 0, *n;
	enum batch_reason r;
	struct wire_field f;
	unsigned i;

	for (;;) {
		if ((r = next_field(&at, end, &f)))
			return r;
		switch (f.number) {
		case 0:
			goto done;
		case OAL_HEADER_AP_ID: case OAL_HEADER_SITE: case OAL_HEADER_NAMES:
			if (f.type != WIRE_BYTES || !utf8_is_valid(f.at, f.len))
				return BATCH_MALFORMED;
			if (f.number == OAL_HEADER_AP_ID)
				v->ap_id = (struct batch_span){f.at, f.len};
			else if (f.number == OAL_HEADER_SITE)
				v->site = (struct batch_span){f.at, f.len};
			else
				v->n_names++;
			break;
		case OAL_HEADER_BOOT_ID: case OAL_HEADER_FEATURE_HASH:
			if (f.type != WIRE_FIXED64)
				return BATCH_MALFORMED;
			*(f.number == OAL_HEADER_BOOT_ID ? &v->boot_id : &v->feature_hash) = wire_fixed64(f.at);
			break;
		case OAL_HEADER_MISSED_START: case OAL_HEADER_MISSED_TICKS:
			if (f.type != WIRE_BYTES)
				return BATCH_MALFORMED;
			n = f.number == OAL_HEADER_MISSED_START ? &v->n_missed : &missed_ticks;
			if ((r = batch_count_varints(f.at, f.len, n)))
				return r;
			break;
		default:
			if (f.number > OAL_HEADER_CLOCK_ERROR_US)
				break; /* unknown: skipped */
			if (f.type != WIRE_VARINT)
				return BATCH_MALFORMED;
			if ((r = get_varint(&f.at, end, &u[f.number])))
				return r;
		}
	}
done:
	for (i = OAL_HEADER_TICK_US; i <= OAL_HEADER_CLOCK_ERROR_US; i++)
		if (u[i] > UINT32_MAX)
			return BATCH_VALUE_RANGE;
	v->seq = u[OAL_HEADER_SEQ];
	v->t0_us = u[OAL_HEADER_T0_US];
	v->tick_us = (uint32_t)u[OAL_HEADER_TICK_US];
	v->ticks = (uint32_t)u[OAL_HEADER_TICKS];
	v->schema_revision = (uint32_t)u[OAL_HEADER_SCHEMA_REVISION];
	v->ring_drops = (uint32_t)u[OAL_HEADER_RING_DROPS];
	v->rows_dropped = (uint32_t)u[OAL_HEADER_ROWS_DROPPED];
	v->dumps_interrupted = (uint32_t)u[OAL_HEADER_DUMPS_INTERRUPTED];
	v->tick_late_max_us = (uint32_t)u[OAL_HEADER_TICK_LATE_MAX_US];
	v->clock_state = (uint32_t)u[OAL_HEADER_CLOCK_STATE];
	v->clock_error_us = (uint32_t)u[OAL_HEADER_CLOCK_ERROR_US];
	if (v->t0_us >> 62 || v->seq >> 63)
		return BATCH_VALUE_RANGE;
	if (!v->tick_us || !v->ticks)
		return BATCH_MALFORMED;
	if ((uint64_t)v->ticks * v->tick_us >= BATCH_MAX_OFFSET_US)
		return BATCH_VALUE_RANGE;
	if (v->n_missed != missed_ticks || !v->ap_id.len)
		return BATCH_MALFORMED;
	if (v->schema_revision < 1 || v->schema_revision > OAL_SETTING_SCHEMA_REVISION)
		return BATCH_UNKNOWN_REVISION;
	return BATCH_OK;
}

struct batch_span batch_name(const struct batch_view *v, uint32_t i)
{
	struct batch_values names;
	uint32_t k;

	batch_values_begin(&names, v->header, OAL_HEADER_NAMES);
	for (k = 0; batch_values_piece(&names); k++)
		if (k == i)
			return (struct batch_span){names.at, (size_t)(names.end - names.at)};
	return batch_empty_span();
}

void batch_missed(struct batch_missed_cursor *c, const struct batch_view *v)
{
	c->left = v->n_missed;
	batch_values_begin(&c->start, v->header, OAL_HEADER_MISSED_START);
	batch_values_begin(&c->ticks, v->header, OAL_HEADER_MISSED_TICKS);
}

bool batch_next_missed(struct batch_missed_cursor *c, uint64_t *start, uint64_t *ticks)
{
	if (!c->left)
		return false;
	c->left--;
	return batch_values_next(&c->start, start) && batch_values_next(&c->ticks, ticks);
}
