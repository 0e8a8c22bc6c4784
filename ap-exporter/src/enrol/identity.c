#ifdef HAVE_AGENT
#include "enrol/identity.h"
#include "base/version.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int failed(const char *what, char *err, size_t err_size)
{
	const char *reason = ERR_reason_error_string(ERR_get_error());

	snprintf(err, err_size, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
	ERR_clear_error();
	return -EINVAL;
}

/* What was written to a memory BIO, as a string of its own; ends the BIO. NULL: out of memory. */
static char *text_of(BIO *b)
{
	char *bytes, *text;
	const long len = BIO_get_mem_data(b, &bytes);

	text = len > 0 ? malloc((size_t)len + 1) : NULL;
	if (text) {
		memcpy(text, bytes, (size_t)len);
		text[len] = '\0';
	}
	BIO_free(b);
	return text;
}

static bool add_name(X509_NAME *n, const char *field, const char *value)
{
	return X509_NAME_add_entry_by_txt(n, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0) == 1;
}

int identity_make(char **key, char **request, const char *ap_id, char *err, size_t err_size)
{
	EVP_PKEY *pkey = EVP_EC_gen("P-256");
	X509_REQ *req = X509_REQ_new();
	BIO *key_text = BIO_new(BIO_s_mem()), *req_text = BIO_new(BIO_s_mem());
	bool good = pkey && req && key_text && req_text;

	if (good) {
		X509_NAME *name = X509_REQ_get_subject_name(req);

		good = add_name(name, "O", "oal") && add_name(name, "OU", "ap") && add_name(name, "CN", ap_id) &&
		       X509_REQ_set_pubkey(req, pkey) == 1 && X509_REQ_sign(req, pkey, EVP_sha256()) > 0 &&
		       PEM_write_bio_PrivateKey(key_text, pkey, NULL, NULL, 0, NULL, NULL) == 1 &&
		       PEM_write_bio_X509_REQ(req_text, req) == 1;
	}
	EVP_PKEY_free(pkey);
	X509_REQ_free(req);
	if (!good) {
		BIO_free(key_text);
		BIO_free(req_text);
		return failed("cannot make a key and a certificate request", err, err_size);
	}
	*key = text_of(key_text);
	*request = text_of(req_text);
	if (*key && *request)
		return 0;
	free(*key);
	free(*request);
	snprintf(err, err_size, "out of memory for a key");
	return -ENOMEM;
}

static int64_t time_us(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) * 1000000 : 0;
}

static X509 *first_certificate(BIO *b)
{
	return b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
}

int identity_read(struct identity *out, const char *certificate, char *err, size_t err_size)
{
	BIO *b = BIO_new_mem_buf(certificate, -1);
	X509 *x = first_certificate(b);
	int ret = 0;

	if (!x || X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, out->cn, sizeof out->cn) <= 0) {
		ret = failed("it is not a certificate with a CN", err, err_size);
	} else {
		out->not_before_us = time_us(X509_get0_notBefore(x));
		out->not_after_us = time_us(X509_get0_notAfter(x));
	}
	X509_free(x);
	BIO_free(b);
	return ret;
}

/* Does the certificate, with what follows it in its text, lead to one of `ca`? */
static bool leads_to(X509 *leaf, BIO *rest, const char *ca)
{
	BIO *b = BIO_new_mem_buf(ca, -1);
	STACK_OF(X509) *between = sk_X509_new_null();
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	bool good = b && between && store && ctx;
	X509 *x;

	while (good && (x = first_certificate(rest)))
		good = sk_X509_push(between, x) > 0;
	while (good && (x = first_certificate(b))) {
		good = X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	good = good && X509_STORE_CTX_init(ctx, store, leaf, between) == 1;
	if (good) {
		X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_NO_CHECK_TIME);
		good = X509_verify_cert(ctx) == 1;
	}
	ERR_clear_error(); /* the ends of the texts count as errors */
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	sk_X509_pop_free(between, X509_free);
	BIO_free(b);
	return good;
}

int identity_check(const char *certificate, const char *key, const char *ca, const char *ap_id, char *err,
                   size_t err_size)
{
	BIO *b = BIO_new_mem_buf(certificate, -1), *k = BIO_new_mem_buf(key, -1);
	X509 *x = first_certificate(b);
	EVP_PKEY *pkey = k ? PEM_read_bio_PrivateKey(k, NULL, NULL, NULL) : NULL;
	struct identity id;
	int ret = 0;

	if (!x || !pkey)
		ret = failed("the certificate or its key cannot be read", err, err_size);
	else if (X509_check_private_key(x, pkey) != 1)
		ret = failed("the certificate is not for this " OAL_HERE "'s new key", err, err_size);
	else if (!leads_to(x, b, ca))
		ret = failed("the certificate is not signed by the authority that came with it", err, err_size);
	ret = ret ? ret : identity_read(&id, certificate, err, err_size);
	if (!ret && strcmp(id.cn, ap_id)) {
		snprintf(err, err_size, "the certificate is of '%s', not of '%s'", id.cn, ap_id);
		ret = -EINVAL;
	}
	X509_free(x);
	EVP_PKEY_free(pkey);
	BIO_free(b);
	BIO_free(k);
	return ret;
}

void identity_time(char out[32], int64_t us)
{
	const time_t t = (time_t)(us / 1000000);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(out, 32, "?");
}
#endif
