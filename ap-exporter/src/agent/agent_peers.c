#ifdef HAVE_AGENT
#include "agent/agent_peers.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_S = 10 }; /* for a whole answer: it is small, and old figures say nothing */
/* The service answers an AP once a second. */
#define GAP_US UINT64_C(1000000)

/* Each radio has its share of the rows. */
static unsigned share(const struct agent_peers *a)
{
	return PEER_LIST_MAX / (a->n ? a->n : 1);
}

static void publish(struct agent_peers *a)
{
	struct peers_snapshot *out = peers_draft(a->peers);
	unsigned i, k;

	out->list.n = 0;
	for (i = 0; i < a->n; i++)
		for (k = 0; k < a->radios[i].list.n && k < share(a); k++) {
			out->at_us[out->list.n] = a->radios[i].received_us;
			out->list.rows[out->list.n++] = a->radios[i].list.rows[k];
		}
	peers_publish(a->peers);
}

static void forget(struct peer_radio *r)
{
	r->list.n = 0;
	r->etag[0] = '\0';
}

static struct peer_radio *find(struct agent_peers *a, uint16_t frequency_mhz)
{
	unsigned i;

	for (i = 0; i < a->n; i++)
		if (a->radios[i].frequency_mhz == frequency_mhz)
			return &a->radios[i];
	return NULL;
}

/* The radios are where the tick thread saw them last. A new channel is asked about first. */
static void follow_radios(struct agent_peers *a, uint64_t now_us)
{
	uint16_t now[PEER_RADIOS];
	const unsigned n = peers_frequencies(a->peers, now);
	unsigned i = 0, k;
	bool left = false;

	while (i < a->n) {
		for (k = 0; k < n && now[k] != a->radios[i].frequency_mhz; k++)
			;
		if (k < n) {
			i++;
			continue;
		}
		left = true;
		a->radios[i] = a->radios[--a->n];
	}
	for (k = 0; k < n; k++) {
		if (find(a, now[k]))
			continue;
		a->next = a->n;
		forget(&a->radios[a->n]);
		a->radios[a->n].frequency_mhz = now[k];
		a->radios[a->n++].good_us = now_us;
		a->at_us = a->requested_us ? a->requested_us + GAP_US : a->at_us;
	}
	if (left)
		publish(a);
}

/* When the next of the lists is too old. */
static uint64_t drop_old(struct agent_peers *a, uint64_t now_us)
{
	const uint64_t after_us = 3 * a->every_us + TIMEOUT_S * UINT64_C(1000000);
	uint64_t next_us = UINT64_MAX;
	bool dropped = false;
	unsigned i;

	for (i = 0; i < a->n; i++) {
		struct peer_radio *r = &a->radios[i];

		if (!r->list.n)
			continue;
		if (now_us - r->good_us >= after_us) {
			forget(r);
			dropped = true;
		} else if (r->good_us + after_us < next_us) {
			next_us = r->good_us + after_us;
		}
	}
	if (dropped)
		publish(a);
	return next_us;
}

static void request_list(struct agent_peers *a, uint64_t now_us)
{
	const struct peer_radio *r = &a->radios[a->next % a->n];
	const char *headers[3] = {"Accept: application/json"};
	const uint64_t gap_us = a->every_us / a->n;
	char url[1024], match[HTTP_ETAG + 24];

	snprintf(url, sizeof url, "%s?site=%s&frequency_mhz=%u", a->url, a->site, r->frequency_mhz);
	snprintf(match, sizeof match, "If-None-Match: \"%s\"", r->etag);
	headers[1] = r->etag[0] ? match : NULL;
	a->requested_mhz = r->frequency_mhz;
	a->next = (a->next + 1) % a->n;
	a->requested_us = now_us;
	a->at_us = now_us + (gap_us > GAP_US ? gap_us : GAP_US);
	a->counts.requests++;
	if (!http_request_url(a->request, url) || !http_get(a->request, headers, TIMEOUT_S))
		a->counts.errors++; /* no memory now */
}

uint64_t agent_peers_run(struct agent_peers *a, uint64_t now_us)
{
	uint64_t next_us;

	if (!a->request)
		return UINT64_MAX;
	follow_radios(a, now_us);
	next_us = drop_old(a, now_us);
	if (!a->n || http_request_active(a->request))
		return next_us; /* the tick thread, or the answer, wakes this one */
	if (now_us >= a->at_us)
		request_list(a, now_us);
	return a->at_us < next_us ? a->at_us : next_us;
}

/* Reads a body. False: `why` says what is wrong with it. */
static bool read_list(struct agent_peers *a, struct peer_radio *r, const struct http_answer *got, uint64_t now_us,
		      char *why, size_t why_size)
{
	struct peer_list list;

	if (got->oversized) {
		snprintf(why, why_size, "neighbours on %u MHz: more than %d bytes", r->frequency_mhz, PEER_LIST_BYTES);
		return false;
	}
	if (peer_list_read(&list, got->body, got->len, a->ap_id, a->site, r->frequency_mhz, why, why_size))
		return false;
	r->list = list;
	r->received_us = r->good_us = now_us;
	snprintf(r->etag, sizeof r->etag, "%s", got->etag);
	a->counts.lists++;
	publish(a);
	return true;
}

bool agent_peers_answer(struct agent_peers *a, const struct http_answer *got, uint64_t retry_us, uint64_t now_us,
			char *why, size_t why_size)
{
	struct peer_radio *r = find(a, a->requested_mhz);
	bool good = got->status == 200 || got->status == 204 || got->status == 304;

	if (!r)
		return false; /* the radio has left that channel meanwhile */
	if (!good) {
		a->counts.errors++;
		if (got->status)
			snprintf(why, why_size, "the service answered a question about neighbours with %ld%s%.150s",
				 got->status, got->error[0] ? ": " : "", got->error);
		else
			snprintf(why, why_size, "a question about neighbours was not answered: %.180s", got->error);
	} else if (got->status == 200) {
		good = read_list(a, r, got, now_us, why, why_size);
		a->counts.refused += !good;
	} else if (got->status == 204) {
		a->counts.lists++;
		r->good_us = now_us;
		if (r->list.n) {
			forget(r);
			publish(a);
		}
	} else {
		a->counts.unchanged++;
		r->good_us = now_us;
	}
	a->failures = good ? 0 : a->failures + 1;
	if (!good && retry_us > a->at_us)
		a->at_us = retry_us;
	return !good;
}
#endif
