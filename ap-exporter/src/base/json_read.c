#include "base/json_read.h"

#include <string.h>

static bool bad(struct json_reader *r)
{
	r->bad = true;
	return false;
}

/* The next byte that is no blank; 0 at the end, and when the reader is bad. */
static uint8_t peek(struct json_reader *r)
{
	while (!r->bad && r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
	return r->bad || r->at == r->end ? 0 : *r->at;
}

static bool accept(struct json_reader *r, uint8_t c)
{
	if (peek(r) != c || !c)
		return bad(r);
	r->at++;
	return true;
}

void json_read_begin(struct json_reader *r, const void *text, size_t len)
{
	*r = (struct json_reader){.at = text, .end = (const uint8_t *)text + len};
}

static bool enter(struct json_reader *r, uint8_t open)
{
	if (r->depth == JSON_READ_DEPTH || !accept(r, open))
		return bad(r);
	r->depth++;
	r->first = true;
	return true;
}

/* True: something follows. False: that was all, or it is bad. */
static bool more(struct json_reader *r, uint8_t close)
{
	const bool first = r->first;

	r->first = false;
	if (peek(r) == close && close) {
		r->at++;
		r->depth--;
		return false;
	}
	return first ? !r->bad : accept(r, ',');
}

bool json_read_object(struct json_reader *r)
{
	return enter(r, '{');
}

bool json_read_array(struct json_reader *r)
{
	return enter(r, '[');
}

bool json_read_element(struct json_reader *r)
{
	return !r->bad && more(r, ']');
}

/* --- strings */

static int hex(uint8_t c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* Four hexadecimal digits; negative: there are none. */
static int32_t read_unit(struct json_reader *r)
{
	int32_t unit = 0;
	int i;

	for (i = 0; i < 4; i++, r->at++) {
		const int digit = r->at < r->end ? hex(*r->at) : -1;

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* What follows \u, as a code point; negative: none. */
static int32_t read_point(struct json_reader *r)
{
	const int32_t high = read_unit(r);
	int32_t low;

	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high > 0xdbff || r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
		return -1;
	r->at += 2;
	low = read_unit(r);
	return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static unsigned utf8(uint8_t out[4], int32_t point)
{
	static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
	const unsigned n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	unsigned i;

	for (i = n; i-- > 1; point >>= 6)
		out[i] = (uint8_t)(0x80 | (point & 0x3f));
	out[0] = (uint8_t)(lead[n] | point);
	return n;
}

/* The next character, unescaped. 0: the string ended; negative: it is bad. */
static int next_character(struct json_reader *r, uint8_t out[4])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *escape;
	int32_t point;
	uint8_t c;

	if (r->at == r->end)
		return -1;
	c = out[0] = *r->at++;
	if (c == '"')
		return 0;
	if (c < 0x20)
		return -1;
	if (c != '\\')
		return 1;
	if (r->at == r->end)
		return -1;
	c = *r->at++;
	if (c == 'u') {
		point = read_point(r);
		return point < 0 ? -1 : (int)utf8(out, point);
	}
	escape = c ? strchr(from, c) : NULL;
	if (!escape)
		return -1;
	out[0] = (uint8_t)to[escape - from];
	return 1;
}

/* A string; what does not fit is left out, and `*len` is then not less than `size`. */
static bool read_string(struct json_reader *r, char *out, size_t size, size_t *len)
{
	uint8_t character[4];
	int n;

	*len = 0;
	if (!accept(r, '"'))
		return false;
	while ((n = next_character(r, character)) > 0) {
		if (*len + (size_t)n < size)
			memcpy(out + *len, character, (size_t)n);
		*len += (size_t)n;
	}
	if (*len < size)
		out[*len] = '\0';
	return n == 0 || bad(r);
}

bool json_read_member(struct json_reader *r, char *name, size_t size)
{
	size_t len;

	if (r->bad || !more(r, '}') || !read_string(r, name, size, &len) || !accept(r, ':'))
		return false;
	if (len >= size || strlen(name) != len)
		name[0] = '\0';
	return true;
}

bool json_read_text(struct json_reader *r, char *out, size_t size)
{
	size_t len;

	if (!read_string(r, out, size, &len))
		return false;
	return (len < size && strlen(out) == len) || bad(r);
}

/* --- numbers, and values that nobody wants */

bool json_read_number(struct json_reader *r, uint64_t most, uint64_t *out)
{
	const uint8_t first = peek(r), *const from = r->at;
	uint64_t value = 0;

	if (first < '0' || first > '9')
		return bad(r);
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		const uint64_t digit = *r->at - '0';

		if (digit > most || value > (most - digit) / 10 || (first == '0' && r->at > from))
			return bad(r); /* too large, or a leading zero */
		value = value * 10 + digit;
	}
	if (r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E'))
		return bad(r);
	*out = value;
	return true;
}

static unsigned skip_digits(struct json_reader *r)
{
	const uint8_t *from = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (unsigned)(r->at - from);
}

static bool skip_number(struct json_reader *r)
{
	const uint8_t *from;

	if (*r->at == '-')
		r->at++;
	from = r->at;
	if (!skip_digits(r) || (*from == '0' && r->at - from > 1))
		return bad(r);
	if (r->at < r->end && *r->at == '.') {
		r->at++;
		if (!skip_digits(r))
			return bad(r);
	}
	if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
		r->at++;
		if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
			r->at++;
		if (!skip_digits(r))
			return bad(r);
	}
	return true;
}

static bool skip_word(struct json_reader *r, const char *word)
{
	const size_t len = strlen(word);

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return bad(r);
	r->at += len;
	return true;
}

bool json_read_skip(struct json_reader *r)
{
	const uint8_t c = peek(r);
	char name[2];
	size_t len;

	switch (c) {
	case '{':
		for (json_read_object(r); json_read_member(r, name, sizeof name);)
			json_read_skip(r); /* no deeper than JSON_READ_DEPTH */
		return !r->bad;
	case '[':
		for (json_read_array(r); json_read_element(r);)
			json_read_skip(r);
		return !r->bad;
	case '"':
		return read_string(r, name, sizeof name, &len);
	case 't':
		return skip_word(r, "true");
	case 'f':
		return skip_word(r, "false");
	case 'n':
		return skip_word(r, "null");
	default:
		return c == '-' || (c >= '0' && c <= '9') ? skip_number(r) : bad(r);
	}
}

bool json_read_end(struct json_reader *r)
{
	return !peek(r) && !r->bad && r->at == r->end && !r->depth;
}
