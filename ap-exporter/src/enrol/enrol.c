#ifdef HAVE_AGENT
#include "enrol/enrol.h"

#include "enrol/http.h"
#include "base/clock.h"
#include "enrol/credentials.h"
#include "enrol/identity.h"
#include "enrol/issued.h"
#include "base/json.h"
#include "base/log.h"
#include "base/version.h"
#include "enrol/ticket.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIMEOUT_S = 30, /* of one attempt: a key exchange over a poor uplink takes some seconds */
	ATTEMPTS = 3, /* an answer that was lost is given again to the same key */
	ERR = 1024, /* bytes of an error text */
};

static int read_ticket(struct ticket *t, const char *text, char *err, size_t err_size)
{
	static char line[TICKET_MAX + 2];
	size_t n;
	int ret;

	if (strcmp(text, "-"))
		return ticket_parse(t, text, strlen(text), err, err_size);
	n = fread(line, 1, sizeof line, stdin);
	ret = ticket_parse(t, line, n, err, err_size);
	explicit_bzero(line, sizeof line);
	return ret;
}

/* The ticket says who this AP is; a configuration that says something else is wrong, or the ticket is another AP's. */
static int check_names(const struct config *c, const char *path, const struct ticket *t, char *err, size_t err_size)
{
	if (c->exporter.named && strcmp(c->exporter.ap_id, t->ap_id)) {
		snprintf(err, err_size,
		         "the ticket is for " OAL_HERE " '%s', and %s has option ap_id '%s': use that " OAL_HERE
		         "'s ticket, or change the option",
		         t->ap_id, path, c->exporter.ap_id);
		return -EINVAL;
	}
	if (c->exporter.site[0] && strcmp(c->exporter.site, t->site)) {
		snprintf(err, err_size,
		         "the ticket is for " OAL_HERE " '%s' at site '%s', and %s has option site '%s': get a "
		         "ticket with --site %s, or change the option",
		         t->ap_id, t->site, path, c->exporter.site, c->exporter.site);
		return -EINVAL;
	}
	return 0;
}

/* --- the question */

/* Why there was no answer, in words that help. */
static void explain(const struct ticket *t, const char *error, char *err, size_t err_size)
{
	const bool clock = strstr(error, "not yet valid") || strstr(error, "expired");
	char now[32], dates[160] = "";

	if (clock) {
		identity_time(now, (int64_t)clock_realtime_us());
		if (!http_certificate_dates(t->url, dates, sizeof dates))
			snprintf(dates, sizeof dates, "another time");
		snprintf(err, err_size,
		         "this " OAL_HERE "'s clock says %s, but the certificate of %s is valid %s: set the clock "
		         "(ntpd, or date -s) and try again; the ticket was not used",
		         now, t->url, dates);
	} else if (strstr(error, "certificate") || strstr(error, "SSL")) {
		snprintf(err, err_size,
		         "%s is not the service that the ticket was made for: its certificate is not signed by the "
		         "ticket's authority, or is for another name (%s); the ticket was not used",
		         t->url, error);
	} else {
		snprintf(err, err_size,
		         "no answer from %s: %s; if the request got there the ticket is used up, and a new one is "
		         "needed",
		         t->url, error);
	}
}

static void refused(const struct ticket *t, const struct http_answer *a, char *err, size_t err_size)
{
	const char *what = a->status == 401 ? "the token has been used or has lapsed, or was never given out: get a "
	                                      "new ticket with: oal-deploy ctl ticket"
	                   : a->status == 403 ? "this " OAL_HERE " is revoked there; if that is a mistake: "
	                                        "oal-deploy ctl restore"
	                   : a->status == 400 ? "it does not take the certificate request"
	                   : a->status == 404 ? "there is no enrolment at that address: enrol_listen and enrol.url of "
	                                        "the push service must fit"
	                   : a->status == 429 ? "too many attempts: wait a minute"
	                   : a->oversized     ? "its answer is too long"
	                                      : "try again later";

	snprintf(err, err_size, "%s answered %ld: %s%s%s%.200s", t->url, a->status, what,
	         a->status == 401 ? " " : a->error[0] ? " (" : "",
	         a->status == 401 ? t->ap_id : a->error, a->status != 401 && a->error[0] ? ")" : "");
}

/* No answer, and not because the service is not the one that is looked for. */
static bool may_be_lost(const struct http_answer *a)
{
	return !a->status && !strstr(a->error, "certificate");
}

/* POSTs token and request; what came is in `issued`. */
static int send_request(const struct ticket *t, const char *request, struct issued *issued, char *err, size_t err_size)
{
	struct http_pem ca = {(char *)(uintptr_t)t->ca, strlen(t->ca)};
	const struct http_identity nobody = {.ca = &ca};
	const struct http_answer *a = NULL;
	struct http_request *r = NULL;
	struct http *http = NULL;
	char url[320], body[4096];
	struct json json = {body, sizeof body, 0};
	int ret = http_new(&http, err, err_size);

	json_add(&json, "{\"token\": ");
	json_string(&json, t->token);
	json_add(&json, ", \"csr\": ");
	json_string(&json, request);
	json_add(&json, "}");
	snprintf(url, sizeof url, "%s/v1/enrol", t->url);
	if (!ret) {
		r = http_request_new(http, url, &nobody, NULL, ISSUED_MAX_BYTES, err, err_size);
		ret = r ? 0 : -ENOMEM;
	}
	/* The same request again: the service gives the same answer, if only that was lost. */
	for (unsigned i = 0; !ret && i < ATTEMPTS && (!a || may_be_lost(a)); i++) {
		if (a)
			poll(NULL, 0, 1000);
		a = NULL;
		if (!http_post(r, body, TIMEOUT_S)) {
			snprintf(err, err_size, "out of memory");
			ret = -ENOMEM;
		}
		while (!ret && !http_done(http, &a))
			http_wait(http, 1000);
	}
	explicit_bzero(body, sizeof body);
	if (!ret && !a->status) {
		explain(t, a->error, err, err_size);
		ret = -EHOSTUNREACH;
	} else if (!ret && (a->status != 200 || a->oversized)) {
		refused(t, a, err, err_size);
		ret = -EACCES;
	} else if (!ret) {
		ret = issued_read(issued, a->body, a->len, t->ap_id, t->site, err, err_size);
	}
	http_request_free(r);
	http_free(http);
	return ret;
}

/* --- before and after it */

/* Every path, before the ticket is used up. */
static int check_paths(const struct config *c, const struct ticket *t, char *err, size_t err_size)
{
	char one[] = "1", two[] = "2", three[] = "3", four[] = "4";
	const struct issued any = {.certificate = one, .ca = two, .mac_keys = three, .trusted_keys = four};
	struct file_set files;
	int ret = credentials_files(&files, c, t->ap_id, true, &any, "5", three, err, err_size);

	if (!ret && !files.n) {
		snprintf(err, err_size,
		         "the configuration names no file to keep a certificate in: add a section 'kafka' with ca, "
		         "certificate, key and mac_keys, or a section 'agent'");
		ret = -EINVAL;
	}
	return ret ? ret : file_set_check(&files, err, err_size);
}

static void print_result(const struct config *c, const struct ticket *t, const struct file_set *files,
			 const char *certificate)
{
	const int64_t now_us = (int64_t)clock_realtime_us();
	char from[32], until[32], now[32], err[ERR];
	struct identity id;
	unsigned i;

	if (identity_read(&id, certificate, err, sizeof err) < 0)
		return; /* it was checked */
	identity_time(from, id.not_before_us);
	identity_time(until, id.not_after_us);
	identity_time(now, now_us);
	printf(OAL_HERE " %s%s%s is enrolled; its certificate is good until %s\n", t->ap_id,
	       t->site[0] ? " at site " : "", t->site, until);
	for (i = 0; i < files->n; i++)
		printf("wrote %s\n", files->file[i].path);
	if (now_us < id.not_before_us || now_us > id.not_after_us)
		printf("this " OAL_HERE "'s clock is wrong: it says %s, and the certificate just made is valid from %s "
		       "to %s; set the clock before " OAL_PROGRAM " is started, or what it sends has wrong times\n",
		       now, from, until);
	if (c->exporter.named && !strcmp(c->exporter.site, t->site))
		return;
	printf("now set:\n");
#ifdef OAL_HOST
	if (!c->exporter.named)
		printf("option ap_id '%s'\n", t->ap_id);
	if (strcmp(c->exporter.site, t->site))
		printf("option site '%s'\n", t->site);
#else
	if (!c->exporter.named)
		printf("uci set ap-exporter.@exporter[0].ap_id='%s'\n", t->ap_id);
	if (strcmp(c->exporter.site, t->site))
		printf("uci set ap-exporter.@exporter[0].site='%s'\n", t->site);
	printf("uci commit ap-exporter\n");
#endif
}

static int store(const struct config *c, const struct ticket *t, const struct issued *issued, const char *key,
                 char *err, size_t err_size)
{
	char why[512];
	struct file_set files;
	char *macs = NULL;
	int ret = identity_check(issued->certificate, key, issued->ca, t->ap_id, why, sizeof why);

	if (ret)
		snprintf(err, err_size, "the service's answer cannot be used: %s", why);
	if (!ret) {
		macs = credentials_mac_keys(c->n_kafka ? c->kafka.mac_keys : "", t->ap_id, issued->mac_keys);
		ret = macs ? credentials_files(&files, c, t->ap_id, true, issued, key, macs, err, err_size) : -ENOMEM;
	}
	if (!ret)
		ret = file_set_write(&files, err, err_size);
	if (!ret)
		print_result(c, t, &files, issued->certificate);
	free(macs);
	return ret;
}

int enrol(const struct config *c, const char *path, const char *text)
{
	static struct ticket ticket; /* too large for the stack */
	struct issued issued = {0};
	char *key = NULL, *request = NULL, err[ERR] = "out of memory";
	int ret = read_ticket(&ticket, text, err, sizeof err);

	ret = ret ? ret : check_names(c, path, &ticket, err, sizeof err);
	ret = ret ? ret : check_paths(c, &ticket, err, sizeof err);
	ret = ret ? ret : identity_make(&key, &request, ticket.ap_id, err, sizeof err);
	ret = ret ? ret : send_request(&ticket, request, &issued, err, sizeof err);
	ret = ret ? ret : store(c, &ticket, &issued, key, err, sizeof err);
	if (ret)
		log_error("not enrolled: %s", err);
	explicit_bzero(&ticket, sizeof ticket);
	if (key)
		explicit_bzero(key, strlen(key));
	free(key);
	free(request);
	issued_free(&issued);
	return ret ? 1 : 0;
}
#endif
