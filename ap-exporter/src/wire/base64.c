#include "wire/base64.h"

#include <string.h>

static int sextet(char c, const char last[2])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (int)(at - alphabet) : c == last[0] ? 62 : c == last[1] ? 63 : -1;
}

static bool decode(uint8_t *out, size_t *n, const char *text, size_t len, const char last[2])
{
	unsigned bits = 0, n_bits = 0;
	size_t i;

	for (*n = i = 0; i < len; i++) {
		const int v = sextet(text[i], last);

		if (v < 0)
			return false;
		bits = bits << 6 | (unsigned)v;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[(*n)++] = (uint8_t)(bits >> n_bits);
		}
	}
	return n_bits < 6 && !(bits & ((1u << n_bits) - 1));
}

bool base64_key(uint8_t raw[BASE64_KEY_BYTES], const char text[BASE64_KEY_TEXT])
{
	size_t n;

	return decode(raw, &n, text, BASE64_KEY_TEXT - 1, "+/") && text[BASE64_KEY_TEXT - 1] == '=';
}

bool base64url_decode(uint8_t *out, size_t *n, const char *text, size_t len)
{
	return decode(out, n, text, len, "-_");
}
