#include "agent/peer_list.h"

#include "base/json_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	NAME = 64, /* bytes of an ap_id or a site: what a certificate's CN can hold */
	MEMBER = 24, /* bytes of a member's name: longer ones are none of ours */
};

static const struct {
	const char *name;
	uint64_t most;
} numbers[] = {{"stations", UINT16_MAX},      {"tx_kbps", UINT32_MAX},	     {"tx_airtime_permille", UINT16_MAX},
	       {"busy_permille", UINT16_MAX}, {"loss_permille", UINT16_MAX}, {"backlog_bytes", UINT32_MAX},
	       {"age_ms", UINT32_MAX}};
enum { STATIONS, TX_KBPS, TX_AIRTIME, BUSY, LOSS, BACKLOG, AGE, N_NUMBERS };

uint64_t peer_id(const char *ap_id)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *ap_id; ap_id++)
		h = (h ^ (uint8_t)*ap_id) * UINT64_C(1099511628211);
	return h & INT64_MAX;
}

static bool is_name(const char *s)
{
	return *s && strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == strlen(s);
}

/* One of `aps`. What is wrong with it, or NULL. */
static const char *read_ap(struct json_reader *r, char ap_id[NAME + 1], struct oal_neighbour_ap_row *row)
{
	uint64_t value[N_NUMBERS];
	unsigned given = 0, i;
	char name[MEMBER];

	ap_id[0] = '\0';
	if (!json_read_object(r))
		return "an access point that is no object";
	while (json_read_member(r, name, sizeof name)) {
		if (!strcmp(name, "ap_id")) {
			if (!json_read_text(r, ap_id, NAME + 1))
				return "an ap_id that is none";
			continue;
		}
		for (i = 0; i < N_NUMBERS && strcmp(name, numbers[i].name) != 0; i++)
			;
		if (i == N_NUMBERS) {
			json_read_skip(r);
			continue;
		}
		if (!json_read_number(r, numbers[i].most, &value[i]))
			return numbers[i].name;
		given |= 1u << i;
	}
	if (r->bad)
		return "broken JSON";
	if (!is_name(ap_id))
		return "an ap_id that is none";
	for (i = 0; i < N_NUMBERS; i++)
		if (!(given >> i & 1))
			return numbers[i].name;
	*row = (struct oal_neighbour_ap_row){.neighbour = peer_id(ap_id),
					     .stations = (uint16_t)value[STATIONS],
					     .tx_kbps = (uint32_t)value[TX_KBPS],
					     .tx_airtime_permille = (uint16_t)value[TX_AIRTIME],
					     .busy_permille = (uint16_t)value[BUSY],
					     .loss_permille = (uint16_t)value[LOSS],
					     .backlog_bytes = (uint32_t)value[BACKLOG],
					     .age_ms = (uint32_t)value[AGE]};
	return NULL;
}

static const char *read_aps(struct json_reader *r, struct peer_list *out, const char *own_id, uint16_t frequency_mhz)
{
	struct oal_neighbour_ap_row row;
	char ap_id[NAME + 1];
	unsigned seen = 0, i;

	if (!json_read_array(r))
		return "`aps` that are no list";
	for (out->n = 0; json_read_element(r); seen++) {
		const char *wrong = seen < PEER_LIST_MAX ? read_ap(r, ap_id, &row)
							 : "more access points than were asked for";

		if (wrong)
			return wrong;
		for (i = 0; i < out->n; i++)
			if (out->rows[i].neighbour == row.neighbour)
				return "an access point twice";
		if (!strcmp(ap_id, own_id))
			continue;
		row.frequency_mhz = frequency_mhz;
		out->rows[out->n++] = row;
	}
	return NULL;
}

static const char *read_all(struct json_reader *r, struct peer_list *out, const char *own_id, const char *site,
			    uint16_t frequency_mhz)
{
	bool has_site = false, has_frequency = false, has_aps = false;
	char name[MEMBER], text[NAME + 1];
	const char *wrong = NULL;
	uint64_t value;

	if (!json_read_object(r))
		return "no object";
	while (!wrong && json_read_member(r, name, sizeof name)) {
		if (!strcmp(name, "site")) {
			has_site = json_read_text(r, text, sizeof text) && !strcmp(text, site);
			wrong = has_site ? NULL : "another site";
		} else if (!strcmp(name, "frequency_mhz")) {
			has_frequency = json_read_number(r, UINT16_MAX, &value) && value == frequency_mhz;
			wrong = has_frequency ? NULL : "another frequency";
		} else if (!strcmp(name, "aps")) {
			wrong = has_aps ? "`aps` twice" : read_aps(r, out, own_id, frequency_mhz);
			has_aps = true;
		} else {
			json_read_skip(r);
		}
	}
	if (wrong)
		return wrong;
	if (!json_read_end(r))
		return "broken JSON";
	return has_site && has_frequency && has_aps ? NULL : "no site, frequency_mhz or aps";
}

int peer_list_read(struct peer_list *out, const void *json, size_t len, const char *own_id, const char *site,
		   uint16_t frequency_mhz, char *err, size_t err_size)
{
	struct json_reader r;
	const char *wrong;

	out->n = 0;
	json_read_begin(&r, json, len);
	wrong = len > PEER_LIST_BYTES ? "more bytes than were asked for"
				      : read_all(&r, out, own_id, site, frequency_mhz);
	if (!wrong)
		return 0;
	out->n = 0;
	snprintf(err, err_size, "neighbours on %u MHz: %s, near byte %zu", frequency_mhz, wrong,
		 (size_t)(r.at - (const uint8_t *)json));
	return -EINVAL;
}
