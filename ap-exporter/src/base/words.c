#include "base/words.h"

size_t word_next(const char **at, const char *end)
{
	const char *start;

	while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
		(*at)++;
	start = *at;
	while (*at < end && **at > ' ' && **at < 0x7f && **at != '#')
		(*at)++;
	return (size_t)(*at - start);
}

bool words_end(const char *at, const char *end)
{
	return !word_next(&at, end) && (at == end || *at == '#');
}
