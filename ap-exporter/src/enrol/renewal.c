#ifdef HAVE_AGENT
#include "enrol/renewal.h"

#include "base/clock.h"
#include "enrol/credentials.h"
#include "enrol/identity.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text_file.h"
#include "base/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIMEOUT_S = 30, /* as enrolment's; the next attempt comes by itself */
	MOST_BYTES = 1 << 20, /* of an answer or a file: chains and keys are some kilobytes */
};

bool renewal_begin(struct renewal *r, const char *certificate, uint64_t spread)
{
	struct identity id;
	char err[200];
	int64_t third_us;

	if (identity_read(&id, certificate, err, sizeof err))
		return false;
	r->counts.not_after_us = id.not_after_us;
	third_us = (id.not_after_us - id.not_before_us) / 3;
	r->due_us = id.not_after_us - third_us + (third_us > 0 ? (int64_t)(spread % (uint64_t)(third_us / 10 + 1)) : 0);
	return !strcmp(id.cn, r->ap_id);
}

static void failed(struct renewal *r, uint64_t retry_us, const char *why)
{
	r->at_us = retry_us;
	r->counts.errors++;
	snprintf(r->counts.last_error, sizeof r->counts.last_error, "%.190s", why);
	if (!r->failures++) { /* the first of a row; the others are counted */
		char until[32];

		identity_time(until, r->counts.not_after_us);
		log_warn(OAL_HERE " %s: its certificate, good until %s, is not renewed: %s", r->ap_id, until, why);
	}
	if (r->key)
		explicit_bzero(r->key, strlen(r->key));
	free(r->key);
	r->key = NULL;
}

static bool send_request(struct renewal *r)
{
	char body[4096], *request = NULL, err[200];
	struct json json = {body, sizeof body, 0};

	if (identity_make(&r->key, &request, r->ap_id, err, sizeof err))
		return false;
	json_add(&json, "{\"csr\": ");
	json_string(&json, request);
	json_add(&json, "}");
	free(request);
	return http_post(r->request, body, TIMEOUT_S);
}

uint64_t renewal_run(struct renewal *r, uint64_t now_us)
{
	const int64_t left_us = r->due_us - (int64_t)clock_realtime_us();

	if (!r->request || http_request_active(r->request))
		return UINT64_MAX;
	if (left_us > 0)
		return now_us + (uint64_t)left_us; /* the agent looks again within a minute: the clock may be set */
	if (now_us < r->at_us)
		return r->at_us;
	if (send_request(r))
		return UINT64_MAX;
	failed(r, now_us + 1000000, "no memory for a key and a request");
	return r->at_us;
}

/* Is the Kafka sink's certificate this AP's too? Another one is not touched. */
static bool kafka_is_ours(const struct config *c, const char *ap_id)
{
	struct identity id;
	char *text, err[200];
	size_t len;
	bool ours;

	if (!c->n_kafka || text_file_read(&text, &len, c->kafka.certificate, MOST_BYTES))
		return false;
	ours = !identity_read(&id, text, err, sizeof err) && !strcmp(id.cn, ap_id);

	free(text);
	return ours;
}

static int store(const struct renewal *r, const struct issued *issued, char *err, size_t err_size)
{
	const struct config *c = r->config;
	char *macs = credentials_mac_keys(c->n_kafka ? c->kafka.mac_keys : "", r->ap_id, issued->mac_keys);
	struct file_set files;
	int ret = macs ? 0 : -ENOMEM;

	if (ret)
		snprintf(err, err_size, "out of memory");
	ret = ret ? ret
	          : credentials_files(&files, c, r->ap_id, kafka_is_ours(c, r->ap_id), issued, r->key, macs, err,
	                              err_size);
	ret = ret ? ret : file_set_write(&files, err, err_size);
	free(macs);
	return ret;
}

bool renewal_answer(struct renewal *r, const struct http_answer *a, uint64_t retry_us, struct issued *issued,
                    char **key)
{
	char why[512];
	int ret = -EIO;

	*issued = (struct issued){0};
	if (a->oversized)
		snprintf(why, sizeof why, "the service's answer is too long");
	else if (!a->status)
		snprintf(why, sizeof why, "no answer: %.200s", a->error);
	else if (a->status != 200)
		snprintf(why, sizeof why, "the service answered %ld%s%.160s", a->status, a->error[0] ? ": " : "",
		         a->error);
	else
		ret = issued_read(issued, a->body, a->len, r->ap_id, r->config->exporter.site, why, sizeof why);
	ret = ret ? ret : identity_check(issued->certificate, r->key, issued->ca, r->ap_id, why, sizeof why);
	ret = ret ? ret : store(r, issued, why, sizeof why);
	if (ret) {
		issued_free(issued);
		failed(r, retry_us, why);
		return false;
	}
	*key = r->key;
	r->key = NULL;
	r->failures = 0;
	r->counts.renewed++;
	r->counts.last_error[0] = '\0';
	return true;
}
#endif
