#ifdef HAVE_AGENT
#include "enrol/credentials.h"

#include "enrol/mac_keys.h"
#include "base/text_file.h"
#include "base/words.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add_kafka(struct file_set *s, const struct config_kafka *k, bool certificate, const struct issued *i,
                     const char *key, const char *mac_keys, char *err, size_t err_size)
{
	int ret = 0;

	if (certificate) {
		ret = file_set_add(s, k->ca, i->ca, 0644, err, err_size);
		ret = ret ? ret : file_set_add(s, k->certificate, i->certificate, 0644, err, err_size);
		ret = ret ? ret : file_set_add(s, k->key, key, 0600, err, err_size);
	}
	if (!ret && k->mac_keys[0] && !i->mac_keys[0]) {
		snprintf(err, err_size,
		         "the push service gave no MAC key: have it configured there (enrol: mac_masters), or leave "
		         "'option mac_keys' of section 'kafka' empty");
		return -ENOENT;
	}
	return ret ? ret : file_set_add(s, k->mac_keys, mac_keys, 0600, err, err_size);
}

static int add_agent(struct file_set *s, const struct config_agent *a, const char *ap_id, const struct issued *i,
                     const char *key, char *err, size_t err_size)
{
	char certificate[FILE_SET_PATH], key_path[FILE_SET_PATH];
	int ret;

	config_ap_path(certificate, sizeof certificate, a->cert, ap_id);
	config_ap_path(key_path, sizeof key_path, a->key, ap_id);
	ret = file_set_add(s, a->ca, i->ca, 0644, err, err_size);
	ret = ret ? ret : file_set_add(s, certificate, i->certificate, 0644, err, err_size);
	ret = ret ? ret : file_set_add(s, key_path, key, 0600, err, err_size);
	if (!ret && i->trusted_keys[0]) /* else those that are there stay */
		ret = file_set_add(s, a->trusted_keys, i->trusted_keys, 0644, err, err_size);
	return ret;
}

int credentials_files(struct file_set *s, const struct config *c, const char *ap_id, bool kafka, const struct issued *i,
                      const char *key, const char *mac_keys, char *err, size_t err_size)
{
	const struct passwd *pw;
	int ret = 0;

	file_set_begin(s);
	if (c->exporter.user[0] && geteuid() == 0) {
		pw = getpwnam(c->exporter.user);
		if (!pw) {
			snprintf(err, err_size, "user '%s' is not known here: change 'option user' or add it",
			         c->exporter.user);
			return -ENOENT;
		}
		s->owner = pw->pw_uid; /* it reads them again, and renews them */
		s->group = pw->pw_gid;
	}
	if (c->n_kafka)
		ret = add_kafka(s, &c->kafka, kafka, i, key, mac_keys, err, err_size);
	if (!ret && c->n_agent)
		ret = add_agent(s, &c->agent, ap_id, i, key, err, err_size);
	return ret;
}

char *credentials_mac_keys(const char *path, const char *ap_id, const char *issued)
{
	char *old, *out;
	const char *at, *end;
	size_t len;

	text_file_read(&old, &len, path, MAC_KEYS_MAX_BYTES); /* there may be none yet */
	at = old;
	end = old ? old + strlen(old) : NULL;
	out = malloc(len + strlen(issued) + 2);
	len = 0;
	while (out && at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at)), *word = at, *const after = eol ? eol + 1 : end;
		const size_t n = word_next(&word, eol ? eol : end);

		if (n && !(n == strlen(ap_id) && !memcmp(word - n, ap_id, n))) {
			memcpy(out + len, at, (size_t)(after - at));
			len += (size_t)(after - at);
			if (!eol)
				out[len++] = '\n';
		}
		at = after;
	}
	if (out)
		strcpy(out + len, issued);
	free(old);
	return out;
}
#endif
