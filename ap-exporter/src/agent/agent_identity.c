#ifdef HAVE_AGENT
/* What an AP is known by to the service, and the requests that use it: both change when its certificate is renewed. */
#include "agent/agent_ap_state.h"

#include "base/log.h"
#include "base/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RENEWAL_SHIFT = 12 }; /* a failed renewal is tried again after at most 2^12 s, about an hour */

/* An AP's requests, in the order of the arrays below. */
enum { POLL, REPORT, PEERS, RENEWAL, REQUESTS };

static int read_pem(struct http_pem *pem, const char *pattern, const char *ap_id, char *err, size_t err_size)
{
	char path[CONFIG_FILE + sizeof ((struct agent_ap *)0)->ap_id];

	config_ap_path(path, sizeof path, pattern, ap_id);
	return http_pem_read(pem, path, err, err_size);
}

int agent_identity_read(struct agent_ap *ap, char *err, size_t err_size)
{
	const struct config_agent *c = ap->shared->config;
	const int ret = read_pem(&ap->cert, c->cert, ap->ap_id, err, err_size);

	return ret ? ret : read_pem(&ap->key, c->key, ap->ap_id, err, err_size);
}

static void free_requests(struct http_request *r[REQUESTS])
{
	for (unsigned i = 0; i < REQUESTS; i++)
		http_request_free(r[i]);
}

/* All the requests of an AP with this identity, or none: poll, report, peers, renewal. */
static int make_requests(struct agent_ap *ap, const struct http_identity *identity, bool renews,
			 struct http_request *r[REQUESTS], char *err, size_t err_size)
{
	static const struct {
		const char *path;
		size_t most;
	} kinds[REQUESTS] = {{"bundle", HTTP_MAX_BODY},
			     {"status", HTTP_MAX_BODY},
			     {"neighbours", PEER_LIST_BYTES},
			     {"certificate", ISSUED_MAX_BYTES}};
	const bool wanted[REQUESTS] = {true, true, ap->shared->config->neighbours_s && ap->shared->site[0], renews};
	const char *base = ap->shared->config->url;
	int len = (int)strlen(base);
	char url[AGENT_URL];

	while (len && base[len - 1] == '/')
		len--;
	for (unsigned i = 0; i < REQUESTS; i++) {
		r[i] = NULL;
		if (!wanted[i])
			continue;
		snprintf(url, sizeof url, "%.*s/v1/aps/%s/%s", len, base, ap->ap_id, kinds[i].path);
		r[i] = http_request_new(ap->shared->http, url, identity, ap, kinds[i].most, err, err_size);
		if (!r[i]) {
			while (i--)
				http_request_free(r[i]);
			return -ENOMEM;
		}
		if (i == PEERS)
			memcpy(ap->peers_url, url, sizeof url);
	}
	return 0;
}

static void set_requests(struct agent_ap *ap, struct http_request *r[REQUESTS])
{
	ap->poll = r[POLL];
	ap->report.request = r[REPORT];
	ap->peers.request = r[PEERS];
	ap->renewal.request = r[RENEWAL];
}

int agent_identity_open(struct agent_ap *ap, char *err, size_t err_size)
{
	const bool renews = renewal_begin(&ap->renewal, ap->cert.text, agent_random_below(ap->shared, UINT64_MAX));
	struct http_request *r[REQUESTS];
	int ret;

	ap->identity = (struct http_identity){&ap->shared->ca, &ap->cert, &ap->key};
	ret = make_requests(ap, &ap->identity, renews, r, err, err_size);
	if (ret)
		return ret;
	ap->peers = (struct agent_peers){.url = ap->peers_url,
					 .ap_id = ap->ap_id,
					 .site = ap->shared->site,
					 .every_us = ap->shared->config->neighbours_s * SECOND_US,
					 .peers = ap->peers.peers};
	set_requests(ap, r);
	ap->view.renewal = ap->shown.renewal = ap->renewal.counts; /* its thread does not run yet */
	return 0;
}

static struct http_pem pem_of(const char *text)
{
	struct http_pem p = {strdup(text), strlen(text)};

	return p;
}

bool agent_identity_renewed(struct agent_ap *ap, const struct http_answer *a, uint64_t now_us)
{
	const unsigned failures = ap->renewal.failures,
		       shift = failures < MAX_RENEWAL_SHIFT ? failures : MAX_RENEWAL_SHIFT;
	const uint64_t wait_us = agent_jitter(ap->shared, SECOND_US << shift);
	struct http_request *r[REQUESTS],
		*old[REQUESTS] = {ap->poll, ap->report.request, ap->peers.request, ap->renewal.request};
	struct http_pem ca, cert, key;
	struct issued issued;
	struct trusted_keys trusted;
	char *new_key, err[256];

	if (!renewal_answer(&ap->renewal, a, agent_retry_at_us(a, wait_us, now_us), &issued, &new_key)) {
		agent_note_error(ap, "the certificate is not renewed: %.200s", ap->renewal.counts.last_error);
		return false;
	}
	ca = pem_of(issued.ca);
	cert = pem_of(issued.certificate);
	key = (struct http_pem){new_key, strlen(new_key)};
	if (issued.trusted_keys[0] && !trusted_keys_parse(&trusted, issued.trusted_keys, strlen(issued.trusted_keys),
							  ap->shared->config->trusted_keys, err, sizeof err))
		ap->shared->keys = trusted;
	issued_free(&issued);
	renewal_begin(&ap->renewal, cert.text ? cert.text : "", agent_random_below(ap->shared, UINT64_MAX));
	if (!ca.text || !cert.text ||
	    make_requests(ap, &(struct http_identity){&ca, &cert, &key}, true, r, err, sizeof err)) {
		http_pem_free(&ca);
		http_pem_free(&cert);
		http_pem_free(&key);
		agent_note_error(ap, "no memory for the new certificate: it is used from the next start on");
		return true; /* the files have it */
	}
	free_requests(old);
	http_pem_free(&ap->ca);
	http_pem_free(&ap->cert);
	http_pem_free(&ap->key);
	ap->ca = ca; /* the texts stay where the requests look for them */
	ap->cert = cert;
	ap->key = key;
	ap->identity = (struct http_identity){&ap->ca, &ap->cert, &ap->key};
	set_requests(ap, r);
	ap->report.sending = false; /* what was under way is sent again */
	ap->poll_at_us = now_us;
	log_info(OAL_HERE " %s: certificate renewed", ap->ap_id);
	return true;
}

void agent_identity_close(struct agent_ap *ap)
{
	struct http_request *r[REQUESTS] = {ap->poll, ap->report.request, ap->peers.request, ap->renewal.request},
			    *none[REQUESTS] = {NULL};

	free_requests(r);
	set_requests(ap, none);
}

void agent_identity_free(struct agent_ap *ap)
{
	if (ap->renewal.key)
		explicit_bzero(ap->renewal.key, strlen(ap->renewal.key));
	free(ap->renewal.key);
	http_pem_free(&ap->ca);
	http_pem_free(&ap->cert);
	http_pem_free(&ap->key);
}
#endif
