#include "wire/utf8.h"

/* Unicode's table 3-7: no overlong forms, no surrogates. */
bool utf8_is_valid(const uint8_t *s, size_t n)
{
	size_t i = 0, k, more;

	while (i < n) {
		const uint8_t c = s[i++];
		uint8_t lo = 0x80, hi = 0xbf;

		if (c < 0x80)
			continue;
		if (c >= 0xc2 && c <= 0xdf) {
			more = 1;
		} else if ((c & 0xf0) == 0xe0) {
			more = 2;
			lo = c == 0xe0 ? 0xa0 : lo;
			hi = c == 0xed ? 0x9f : hi;
		} else if (c >= 0xf0 && c <= 0xf4) {
			more = 3;
			lo = c == 0xf0 ? 0x90 : lo;
			hi = c == 0xf4 ? 0x8f : hi;
		} else {
			return false;
		}
		if (more > n - i)
			return false;
		for (k = 0; k < more; k++, lo = 0x80, hi = 0xbf)
			if (s[i + k] < lo || s[i + k] > hi)
				return false;
		i += more;
	}
	return true;
}
