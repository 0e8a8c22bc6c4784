#ifdef HAVE_KAFKA
#include "ship/kafka_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Every AP whose batches this process makes must have a key, for its site. */
static int check_keys(const struct config *c, const struct mac_keys *keys, char *err, size_t err_size)
{
	const bool live = c->n_nl80211 || c->n_qdisc || c->n_packet || c->n_tap || c->n_beacon;
	const char *path = c->kafka.mac_keys, *site = c->exporter.site;
	int ret = live ? mac_keys_check(keys, path, c->exporter.ap_id, site, err, err_size) : 0;

	for (uint32_t i = 0; i < c->n_replay; i++) {
		const struct config_replay *r = &c->replay[i];

		for (unsigned ap = 0; !ret && ap < r->aps; ap++) {
			char name[CONFIG_NAME + 16];

			config_virtual_ap(name, sizeof name, r->ap_prefix[0] ? r->ap_prefix : c->exporter.ap_id, r->aps,
			                  ap);
			ret = mac_keys_check(keys, path, name, site, err, err_size);
		}
	}
	return ret;
}

int kafka_files_keys(struct mac_keys **keys, const struct config *c, char *err, size_t err_size)
{
	char why[512];
	int ret;

	*keys = NULL;
	if (!c->kafka.mac_keys[0])
		return 0;
	ret = mac_keys_read(keys, c->kafka.mac_keys, why, sizeof why);
	if (!ret)
		ret = check_keys(c, *keys, why, sizeof why);
	if (ret) {
		snprintf(err, err_size, "kafka: %s", why);
		mac_keys_free(*keys);
		*keys = NULL;
	}
	return ret;
}

int kafka_files_hash(uint8_t hash[SHA256_BYTES], const struct config *c, char *err, size_t err_size)
{
	const char *files[] = { c->kafka.ca, c->kafka.certificate, c->kafka.key };
	struct sha256 s;

	sha256_begin(&s);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char bytes[2048];
		size_t n;
		FILE *f;

		if (!files[i][0])
			continue;
		f = fopen(files[i], "re");
		if (!f) {
			const int ret = -errno;

			snprintf(err, err_size, "kafka: cannot read %s: %s", files[i], strerror(-ret));
			return ret;
		}
		while ((n = fread(bytes, 1, sizeof bytes, f)))
			sha256_add(&s, bytes, n);
		fclose(f);
		explicit_bzero(bytes, sizeof bytes);
		sha256_add(&s, "", 1);
	}
	sha256_end(&s, hash);
	return 0;
}
#else
typedef int kafka_files_are_not_in_this_build;
#endif
