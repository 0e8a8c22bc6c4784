#ifdef HAVE_AGENT
#include "enrol/http.h"

#include "base/text_file.h"
#include "base/version.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONNECT_TIMEOUT_S = 10,
	KEEPALIVE_S = 30, /* a long poll is silent; a dead peer, or a NAT that forgot it, shows within two minutes */
	ERROR_TEXT = 160, /* kept of the body of an answer other than 200 */
	MAX_PEM = 65535,
};

struct http {
	CURLM *multi;
};

struct http_request {
	struct http *http;
	void *owner;
	CURL *easy;
	struct curl_slist *headers;
	char *json;
	bool active;
	size_t room, max_body;
	struct http_answer answer;
	char curl_error[CURL_ERROR_SIZE];
};

int http_pem_read(struct http_pem *pem, const char *path, char *err, size_t err_size)
{
	int ret = text_file_read(&pem->text, &pem->len, path, MAX_PEM);

	if (ret) {
		snprintf(err, err_size, "agent: cannot read %s: %s", path, strerror(-ret));
	} else if (!strstr(pem->text, "-----BEGIN ")) {
		snprintf(err, err_size, "agent: %s is not a PEM file", path);
		ret = -EINVAL;
	}
	if (ret)
		http_pem_free(pem);
	return ret;
}

void http_pem_free(struct http_pem *pem)
{
	free(pem->text);
	pem->text = NULL;
	pem->len = 0;
}

int http_new(struct http **out, char *err, size_t err_size)
{
	struct http *h = calloc(1, sizeof *h);

	if (h && !curl_global_init(CURL_GLOBAL_DEFAULT))
		h->multi = curl_multi_init();
	if (!h || !h->multi) {
		free(h);
		snprintf(err, err_size, "agent: libcurl cannot be started");
		return -ENOMEM;
	}
	*out = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	curl_multi_cleanup(h->multi);
	curl_global_cleanup();
	free(h);
}

void http_wake(struct http *h)
{
	curl_multi_wakeup(h->multi);
}

void http_wait(struct http *h, int ms)
{
	int running;

	/* In this order: what ends while data is moved is seen before the next wait. A request just begun ends the wait
	 * by itself. */
	curl_multi_poll(h->multi, NULL, 0, ms, NULL);
	curl_multi_perform(h->multi, &running);
}

/* --- one request */

/* Room for a body grows with it, so that what a header promises is not believed. */
static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct http_request *r = ctx;
	struct http_answer *a = &r->answer;
	size_t len = size * n;
	long status = 0;

	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) { /* a word of explanation; the rest is let go */
		const size_t had = strlen(a->error);

		if (had + 1 < ERROR_TEXT)
			snprintf(a->error + had, ERROR_TEXT - had, "%.*s", (int)(len < ERROR_TEXT ? len : ERROR_TEXT),
			         data);
		a->len += len;
		return a->len > r->max_body ? 0 : len;
	}
	if (a->len + len > r->max_body) {
		a->oversized = true;
		return 0;
	}
	if (a->len + len > r->room) {
		size_t room = r->room ? r->room : 8192;
		uint8_t *more;

		while (room < a->len + len)
			room *= 2;
		more = realloc(a->body, room);
		if (!more)
			return 0;
		a->body = more;
		r->room = room;
	}
	memcpy(a->body + a->len, data, len);
	a->len += len;
	return len;
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	http_header_read(&((struct http_request *)ctx)->answer, line, size * n);
	return size * n;
}

static struct curl_blob blob(const struct http_pem *p)
{
	return (struct curl_blob){ p->text, p->len, CURL_BLOB_NOCOPY };
}

struct http_request *http_request_new(struct http *h, const char *url, const struct http_identity *id, void *owner,
                                      size_t max_body, char *err, size_t err_size)
{
	struct http_request *r = calloc(1, sizeof *r);
	struct curl_blob ca = blob(id->ca), part;
	CURLcode bad = CURLE_OK;

	if (r)
		r->easy = curl_easy_init();
	if (!r || !r->easy) {
		free(r);
		snprintf(err, err_size, "agent: out of memory for %s", url);
		return NULL;
	}
	r->http = h;
	r->owner = owner;
	r->max_body = max_body;
#define SET(option, value) bad = bad ? bad : curl_easy_setopt(r->easy, option, value)
	SET(CURLOPT_URL, url);
	SET(CURLOPT_PRIVATE, r);
	SET(CURLOPT_ERRORBUFFER, r->curl_error);
	SET(CURLOPT_USERAGENT, OAL_PROGRAM "/" OAL_VERSION);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L); /* a shutdown does not wait for a name server */
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
	SET(CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
	SET(CURLOPT_BUFFERSIZE, 8192L);
	SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
	SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)max_body);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, r);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, r);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_CAINFO, NULL); /* this platform's authority alone, not those of the system */
	SET(CURLOPT_CAPATH, NULL);
	SET(CURLOPT_CAINFO_BLOB, &ca);
	if (id->cert) { /* libcurl copies what describes the blob */
		part = blob(id->cert);
		SET(CURLOPT_SSLCERT_BLOB, &part);
		part = blob(id->key);
		SET(CURLOPT_SSLKEY_BLOB, &part);
	}
#undef SET
	/* Whatever the environment says; a libcurl without proxies does not know it. */
	curl_easy_setopt(r->easy, CURLOPT_NOPROXY, "*");
	if (!bad)
		return r;
	http_request_free(r);
	snprintf(err, err_size,
	         "agent: this libcurl cannot do what is needed "
	         "(HTTPS with certificates from memory, 7.77 or later): %s",
	         curl_easy_strerror(bad));
	return NULL;
}

void http_request_free(struct http_request *r)
{
	if (!r)
		return;
	if (r->active)
		curl_multi_remove_handle(r->http->multi, r->easy);
	curl_easy_cleanup(r->easy);
	curl_slist_free_all(r->headers);
	free(r->answer.body);
	free(r->json);
	free(r);
}

void *http_request_owner(const struct http_request *r)
{
	return r->owner;
}

bool http_request_active(const struct http_request *r)
{
	return r->active;
}

bool http_request_url(struct http_request *r, const char *url)
{
	return curl_easy_setopt(r->easy, CURLOPT_URL, url) == CURLE_OK;
}

static bool add_header(struct http_request *r, const char *line)
{
	struct curl_slist *more = curl_slist_append(r->headers, line);

	if (more)
		r->headers = more;
	return more;
}

static bool begin(struct http_request *r, uint32_t timeout_s)
{
	free(r->answer.body); /* most answers have none: nothing stays allocated for them */
	r->room = 0;
	r->answer = (struct http_answer){ 0 };
	r->curl_error[0] = '\0';
	curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(r->easy, CURLOPT_TIMEOUT, (long)timeout_s);
	r->active = curl_multi_add_handle(r->http->multi, r->easy) == CURLM_OK;
	return r->active;
}

bool http_get(struct http_request *r, const char *const headers[], uint32_t timeout_s)
{
	curl_slist_free_all(r->headers);
	r->headers = NULL;
	for (; *headers; headers++)
		if (!add_header(r, *headers))
			return false;
	curl_easy_setopt(r->easy, CURLOPT_HTTPGET, 1L);
	return begin(r, timeout_s);
}

bool http_post(struct http_request *r, const char *json, uint32_t timeout_s)
{
	free(r->json);
	r->json = strdup(json); /* libcurl reads it while it sends */
	if (!r->json ||
	    (!r->headers && (!add_header(r, "Content-Type: application/json") || !add_header(r, "Expect:"))))
		return false;
	curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->json);
	return begin(r, timeout_s);
}

struct http_request *http_done(struct http *h, const struct http_answer **answer)
{
	struct http_request *r = NULL;
	curl_off_t after = 0;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left)) && m->msg != CURLMSG_DONE)
		;
	if (!m)
		return NULL;
	curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
	r->active = false;
	*answer = &r->answer;
	if (m->data.result == CURLE_FILESIZE_EXCEEDED)
		r->answer.oversized = true;
	if (m->data.result == CURLE_OK || r->answer.oversized)
		curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->answer.status);
	else
		snprintf(r->answer.error, sizeof r->answer.error, "%.250s",
		         r->curl_error[0] ? r->curl_error : curl_easy_strerror(m->data.result));
	if (!curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &after) && after > 0)
		r->answer.retry_after_s = after < 86400 ? (uint32_t)after : 86400;
	curl_multi_remove_handle(h->multi, r->easy);
	return r;
}

/* --- for a message */

static const char *field(const struct curl_slist *lines, const char *name)
{
	const size_t len = strlen(name);

	for (; lines; lines = lines->next)
		if (!strncmp(lines->data, name, len))
			return lines->data + len;
	return NULL;
}

bool http_certificate_dates(const char *url, char *out, size_t size)
{
	CURL *easy = curl_easy_init();
	struct curl_certinfo *info = NULL;
	bool known = false;

	if (!easy)
		return false;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L); /* a handshake, and no more */
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)CONNECT_TIMEOUT_S);
	if (!curl_easy_perform(easy) && !curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) && info &&
	    info->num_of_certs > 0) {
		const char *from = field(info->certinfo[0], "Start date:");
		const char *to = field(info->certinfo[0], "Expire date:");

		known = from && to;
		if (known)
			snprintf(out, size, "from %s to %s", from, to);
	}
	curl_easy_cleanup(easy);
	return known;
}
#endif
