/* row_value.h: a column of a row of any table, as a number. */
#ifndef OAL_ROW_VALUE_H
#define OAL_ROW_VALUE_H

#include <stdint.h>

#include "oal_schema.h"

/* The value at `p` of a column of `type`. Inlined by force: where the type is a constant it is a single instruction. */
__attribute__((always_inline)) static inline int64_t row_load(const void *p, uint8_t type)
{
	if (type == OAL_T_U32) /* most columns that features read */
		return *(const uint32_t *)p;
	switch (type) {
	case OAL_T_U8: return *(const uint8_t *)p;
	case OAL_T_I8: return *(const int8_t *)p;
	case OAL_T_U16: case OAL_T_NAME: case OAL_T_FLOW: return *(const uint16_t *)p;
	case OAL_T_I16: return *(const int16_t *)p;
	case OAL_T_I32: return *(const int32_t *)p;
	default: return *(const int64_t *)p;
	}
}

static inline int64_t row_value(const struct oal_column *c, const void *row)
{
	return row_load((const uint8_t *)row + c->offset, c->type);
}

#endif
