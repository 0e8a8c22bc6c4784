/* test_mac.c: the MAC of a batch against the contract's vectors (schema/golden/macs.txt), and the file of keys. */
#include "check.h"
#include "enrol/mac_keys.h"

#include <errno.h>

#define GOLDEN "../schema/golden/"
#define KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY2 "//////////////////////////////////////////8="

static char err[600];

static void hex(char *out, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void unhex(uint8_t *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned v = 0;

		CHECK(sscanf(text + 2 * i, "%2x", &v) == 1);
		out[i] = (uint8_t)v;
	}
}

/* Record `number` of a golden container. */
static const uint8_t *record(const uint8_t *at, const uint8_t *end, unsigned number, size_t *len)
{
	for (;; at += 5 + *len, number--) {
		if (end - at < 5)
			exit(1);
		*len = (size_t)(at[1] | at[2] << 8 | at[3] << 16 | (uint32_t)at[4] << 24);
		if (!number)
			return at + 5;
	}
}

static void golden(void)
{
	size_t text_len, bin_len, len = 0;
	char *text = (char *)check_file(GOLDEN "macs.txt", &text_len), *line, *rest = text;
	uint8_t *bin = check_file(GOLDEN "extremes.bin", &bin_len), master[32], raw[32], mac[MAC_HEADER_BYTES],
		filler[65];
	struct mac_key key = { 0 };
	unsigned keys = 0, headers = 0;

	memset(filler, 'x', sizeof filler);
	text[text_len - 1] = '\0'; /* the last line's end */
	while ((line = strsep(&rest, "\n"))) {
		char kind[8], a[80], b[80], ap_id[80], site[80], want[80], got[80];
		int topic;
		unsigned n;

		if (sscanf(line, "key %79s %79s %79s %79s %79s", a, b, ap_id, site, want) == 5) {
			unhex(master, b, 32);
			mac_key_derive(raw, master, ap_id, strcmp(site, "-") ? site : "");
			hex(got, raw, 32);
			CHECK(!strcmp(got, want));
			mac_key_begin(&key, (uint8_t)atoi(a), raw);
			keys++;
		} else if (sscanf(line, "%7s %d %u %79s", kind, &topic, &n, want) == 4) {
			const uint8_t *bytes = !strcmp(kind, "text") ? filler : record(bin, bin + bin_len, n, &len);

			mac_header(mac, &key, topic, bytes, bytes == filler ? n : len);
			hex(got, mac, sizeof mac);
			CHECK(!strcmp(got, want));
			headers++;
		} else {
			CHECK(!"a line of macs.txt is understood");
		}
	}
	CHECK_EQ(keys, 5);
	CHECK_EQ(headers, 90);
	free(text);
	free(bin);
}

static void refused(const char *text, const char *a, const char *b)
{
	struct mac_keys *k = NULL;

	err[0] = '\0';
	CHECK_EQ(mac_keys_parse(&k, text, strlen(text), "keys", err, sizeof err), -EINVAL);
	CHECK(!k);
	if (!strstr(err, a) || !strstr(err, b))
		printf("# '%s' for: %s\n", err, text);
	CHECK(strstr(err, a) && strstr(err, b));
}

int main(void)
{
	static const char text[] = "# made by enrolment\nap-2 lab 7 " KEY2 "\n\nap-1 - 1 " KEY
				   "  # old\r\nap-1 lab 9 " KEY2 "\nap-1 - 4 " KEY "\nap-10 lab 1 " KEY "\n";
	struct mac_keys *k = NULL;
	const struct mac_key *key;
	struct sha256 s;
	uint8_t a[32], b[32], bytes[300];

	test("keys of APs and MACs of batches are those of the contract's vectors");
	golden();

	test("a hash does not depend on the pieces in which its bytes come");
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7);
	for (unsigned first = 0; first <= 130; first++) {
		for (unsigned second = 0; second <= 130; second += 13) {
			sha256_begin(&s);
			sha256_add(&s, bytes, first);
			sha256_add(&s, bytes + first, second);
			sha256_add(&s, bytes + first + second, sizeof bytes - first - second);
			sha256_end(&s, a);
			sha256(b, bytes, sizeof bytes);
			CHECK(!memcmp(a, b, 32));
		}
	}

	test("of an AP's keys that with the highest id counts, and each AP has its own");
	CHECK_EQ(mac_keys_parse(&k, text, sizeof text - 1, "keys", err, sizeof err), 0);
	key = mac_keys_find(k, "ap-1", 4);
	CHECK(key && key->id == 9);
	key = mac_keys_find(k, "ap-2...", 4);
	CHECK(key && key->id == 7);
	key = mac_keys_find(k, "ap-10", 5);
	CHECK(key && key->id == 1);
	CHECK(!mac_keys_find(k, "ap-", 3));
	CHECK(!mac_keys_find(k, "ap-100", 6));
	CHECK(!mac_keys_find(k, "", 0));
	CHECK_EQ(mac_keys_check(k, "keys", "ap-1", "lab", err, sizeof err), 0);

	test("an AP without a key, or with one for another site, is told what to do");
	CHECK_EQ(mac_keys_check(k, "keys", "ap-3", "lab", err, sizeof err), -ENOENT);
	CHECK(strstr(err, "keys: no MAC key for AP ap-3") && strstr(err, "enrol"));
	CHECK_EQ(mac_keys_check(k, "keys", "ap-2", "", err, sizeof err), -ENOENT);
	CHECK(strstr(err, "site 'lab'") && strstr(err, "'option site' is ''"));
	mac_keys_free(k);

	test("a line that is not a key is refused with its number, and what a line is");
	refused("ap-1 lab 1 " KEY "\nap-2 lab " KEY "\n", "keys:2:", "AP_ID SITE KEY_ID BASE64");
	refused("ap-1 lab 0 " KEY "\n", "keys:1:", "1 to 255");
	refused("ap-1 lab 256 " KEY "\n", "keys:1:", "1 to 255");
	refused("ap-1 lab 01 " KEY "\n", "keys:1:", "1 to 255");
	refused("ap-1 lab 1x " KEY "\n", "keys:1:", "1 to 255");
	refused("ap/1 lab 1 " KEY "\n", "keys:1:", "AP_ID");
	refused("- lab 1 " KEY "\n", "keys:1:", "AP_ID");
	refused("ap-1 .lab 1 " KEY "\n", "keys:1:", "AP_ID");
	refused("ap-1 lab 1 " KEY " more\n", "keys:1:", "AP_ID");
	refused("ap-1 lab 1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=\n", "keys:1:", "32-BYTES");
	refused("ap-1 lab 1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n", "keys:1:", "32-BYTES");
	refused("ap-1 lab 1\n", "keys:1:", "32-BYTES");
	refused("ap-1\n", "keys:1:", "AP_ID");
	refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa lab 1 " KEY "\n",
	        "keys:1:", "AP_ID");
	test("a file without a key, or with two of one id, is refused");
	refused("# nothing\n\n", "no MAC key in it", "a line is");
	refused("ap-1 lab 1 " KEY "\nap-2 lab 1 " KEY "\nap-1 other 1 " KEY2 "\n", "two keys of one KEY_ID",
	        "leave one out");
	test("a file that is not there is named");
	CHECK_EQ(mac_keys_read(&k, "/nonexistent/mac-keys", err, sizeof err), -ENOENT);
	CHECK(strstr(err, "/nonexistent/mac-keys") != NULL);
	return done();
}
