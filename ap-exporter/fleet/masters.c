#include "masters.h"

#include "wire/base64.h"
#include "base/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1: a key, 0: an empty line, -EINVAL. */
static int parse_line(struct master *m, const char *at, const char *end)
{
	char digits[4] = "";
	size_t len;
	int id;

	if (words_end(at, end))
		return 0;
	len = word_next(&at, end);
	if (!len || len >= sizeof digits)
		return -EINVAL;
	memcpy(digits, at - len, len);
	id = atoi(digits);
	if (strspn(digits, "0123456789") != len || id < 1 || id > 255 || word_next(&at, end) != BASE64_KEY_TEXT ||
	    !base64_key(m->key, at - BASE64_KEY_TEXT) || !words_end(at, end))
		return -EINVAL;
	m->id = (uint8_t)id;
	return 1;
}

int master_read(struct master *out, const char *path, char *err, size_t err_size)
{
	FILE *f = fopen(path, "re");
	struct master newest = {0}, m;
	char line[256];
	unsigned number = 0;
	int ret = f ? 0 : -errno;

	if (!f)
		snprintf(err, err_size, "cannot read the master keys %s: %s", path, strerror(-ret));
	while (!ret && fgets(line, sizeof line, f)) {
		number++;
		ret = parse_line(&m, line, line + strcspn(line, "\n"));
		if (ret < 0)
			snprintf(err, err_size,
				 "%s:%u: not a master key; a line is: KEY_ID (1 to 255) BASE64-OF-32-BYTES", path,
				 number);
		else if (ret && m.id > newest.id)
			newest = m;
		ret = ret < 0 ? ret : 0;
	}
	if (f)
		fclose(f);
	if (!ret && !newest.id) {
		snprintf(err, err_size, "%s: no key in it; a line is: KEY_ID BASE64-OF-32-BYTES", path);
		ret = -EINVAL;
	}
	if (!ret)
		*out = newest;
	return ret;
}
