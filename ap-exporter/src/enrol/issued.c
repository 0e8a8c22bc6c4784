#include "enrol/issued.h"

#include "base/json_read.h"
#include "base/version.h"
#include "enrol/mac_keys.h"
#include "enrol/trusted_keys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 4 };

static bool read_json(struct issued *i, const void *json, size_t len)
{
	struct json_reader r;
	char name[16];

	json_read_begin(&r, json, len);
	if (json_read_object(&r))
		while (json_read_member(&r, name, sizeof name)) {
			if (!strcmp(name, "ap_id"))
				json_read_text(&r, i->ap_id, sizeof i->ap_id);
			else if (!strcmp(name, "site"))
				json_read_text(&r, i->site, sizeof i->site);
			else if (!strcmp(name, "certificate"))
				json_read_text(&r, i->certificate, len + 1);
			else if (!strcmp(name, "ca"))
				json_read_text(&r, i->ca, len + 1);
			else if (!strcmp(name, "mac_keys"))
				json_read_text(&r, i->mac_keys, len + 1);
			else if (!strcmp(name, "trusted_keys"))
				json_read_text(&r, i->trusted_keys, len + 1);
			else
				json_read_skip(&r);
		}
	return json_read_end(&r);
}

/* 0, or -EINVAL with what is wrong in `why`. */
static int check(const struct issued *i, const char *ap_id, const char *site, char *why, size_t size)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----";
	struct trusted_keys trusted;
	struct mac_keys *macs = NULL;
	int ret = 0;

	if (strcmp(i->ap_id, ap_id) || strcmp(i->site, site)) {
		snprintf(why, size, "it is for " OAL_HERE " '%s' at site '%s'", i->ap_id, i->site);
		return -EINVAL;
	}
	if (!strstr(i->certificate, pem) || !strstr(i->ca, pem)) {
		snprintf(why, size, "it has no certificate, or no authority's");
		return -EINVAL;
	}
	if (i->mac_keys[0]) {
		ret = mac_keys_parse(&macs, i->mac_keys, strlen(i->mac_keys), "mac_keys", why, size);
		ret = ret ? ret : mac_keys_check(macs, "mac_keys", ap_id, site, why, size);
		mac_keys_free(macs);
	}
	if (!ret && i->trusted_keys[0])
		ret = trusted_keys_parse(&trusted, i->trusted_keys, strlen(i->trusted_keys), "trusted_keys", why, size);
	return ret;
}

int issued_read(struct issued *i, const void *json, size_t len, const char *ap_id, const char *site, char *err,
                size_t err_size)
{
	char why[512] = "it is not what was asked for";
	int ret;

	*i = (struct issued){.text = len <= ISSUED_MAX_BYTES ? calloc(TEXTS, len + 1) : NULL};
	if (!i->text) {
		snprintf(err, err_size, "the service's answer cannot be used: %s",
		         len > ISSUED_MAX_BYTES ? "it is longer than 64 KiB" : "out of memory");
		return len > ISSUED_MAX_BYTES ? -EFBIG : -ENOMEM;
	}
	i->certificate = i->text;
	i->ca = i->certificate + len + 1;
	i->mac_keys = i->ca + len + 1;
	i->trusted_keys = i->mac_keys + len + 1;
	ret = read_json(i, json, len) ? check(i, ap_id, site, why, sizeof why) : -EINVAL;
	if (!ret)
		return 0;
	issued_free(i);
	snprintf(err, err_size, "the service's answer cannot be used: %s", why);
	return -EINVAL;
}

void issued_free(struct issued *i)
{
	free(i->text);
	*i = (struct issued){0};
}
