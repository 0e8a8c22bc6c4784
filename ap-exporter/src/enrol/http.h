/* http.h: the agent's HTTPS requests (libcurl multi, HTTP/1.1, one thread): a long poll and a report.
 * Nothing here judges what it receives; sizes and times are bounded. */
#ifndef OAL_HTTP_H
#define OAL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oal_schema.h"

enum {
	HTTP_MAX_BODY = OAL_SETTING_MAX_BUNDLE_BYTES,
	HTTP_ETAG = 128,
	HTTP_POLICY = 32, /* a policy's name, its end included */
	HTTP_POLICIES = 16 * HTTP_POLICY, /* a list of them; a longer one is as none */
};

/* OAL-Control: what the kill switch says. */
enum http_control { HTTP_CONTROL_UNSAID, HTTP_CONTROL_ON, HTTP_CONTROL_OFF };

struct http;
struct http_request;

/* A PEM file in memory. TLS files are read before privileges are dropped. */
struct http_pem {
	char *text;
	size_t len;
};

struct http_identity {
	/* Must outlive the requests made with them. cert and key NULL: it says nothing about itself. */
	const struct http_pem *ca, *cert, *key;
};

struct http_answer {
	long status; /* 0: no answer; `error` says why */
	uint8_t *body; /* of a 200; valid until the request's next start */
	size_t len;
	bool oversized; /* the body is longer than the request allows; it was not read */
	char etag[HTTP_ETAG]; /* as sent, without quotes; empty: none */
	int64_t activate_at_us; /* OAL-Activate-At, 0: none */
	enum http_control control; /* of any status */
	bool killed_said; /* with OAL-Killed: */
	bool killed_unclear; /* it is no list that can be kept */
	char killed[HTTP_POLICIES]; /* policies that are off by themselves, one space between two */
	bool policies_said; /* with OAL-Policies, whole and well written: */
	char policies[HTTP_POLICIES]; /* names of the policies that the AP should have, one space between two */
	char policy[HTTP_POLICY]; /* OAL-Policy: that of the body's bundle; empty: not said */
	uint32_t retry_after_s; /* 0: none */
	char error[256];
};

/* Negative errno with the reason in `err`. */
int http_pem_read(struct http_pem *, const char *path, char *err, size_t err_size);
void http_pem_free(struct http_pem *);

int http_new(struct http **, char *err, size_t err_size);
void http_free(struct http *);
/* Ends http_wait() early. Any thread. */
void http_wake(struct http *);
/* Moves data for at most `ms`, or until something happened. */
void http_wait(struct http *, int ms);
/* The next request that ended, with its answer; NULL when there is none. */
struct http_request *http_done(struct http *, const struct http_answer **);

/* NULL, with the reason in `err`: no memory, or a libcurl that lacks something. `owner` is the caller's; `max_body` the
 * most bytes that an answer may have, at most HTTP_MAX_BODY. */
struct http_request *http_request_new(struct http *, const char *url, const struct http_identity *, void *owner,
                                      size_t max_body, char *err, size_t err_size);
void http_request_free(struct http_request *);
void *http_request_owner(const struct http_request *);
bool http_request_active(const struct http_request *);
/* Where the next one goes. False: no memory. */
bool http_request_url(struct http_request *, const char *url);
/* A GET with these header lines (NULL ends the list), or a POST of `json`. False: it could not be started (no
 * memory). */
bool http_get(struct http_request *, const char *const headers[], uint32_t timeout_s);
bool http_post(struct http_request *, const char *json, uint32_t timeout_s);
/* When the certificate of the service at `url` is valid: "from … to …", for a message. It is not believed, and nothing
 * is sent. False: it is not known. */
bool http_certificate_dates(const char *url, char *out, size_t size);

/* http_header.c: one header line of an answer, with or without its end. Lines that mean nothing to an AP, or that are
 * not as the push service writes them, change nothing. */
void http_header_read(struct http_answer *, const char *line, size_t len);
/* The value of OAL-Killed. */
void http_header_killed(struct http_answer *, const char *value);

#endif
