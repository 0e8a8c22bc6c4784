#include "enrol/signature.h"

#include <errno.h>

#ifdef HAVE_OPENSSL
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

int signature_verify_openssl(const uint8_t key[SIGNATURE_KEY_BYTES], const uint8_t signature[SIGNATURE_BYTES],
                             const uint8_t *payload, size_t len)
{
	const size_t domain = sizeof SIGNATURE_DOMAIN - 1;
	/* libcrypto takes the message of an Ed25519 signature in one piece. */
	uint8_t *const message = malloc(domain + len);
	EVP_PKEY *public = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, SIGNATURE_KEY_BYTES);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int ret = -ENOMEM;

	if (!message || !public || !ctx)
		goto out;
	memcpy(message, SIGNATURE_DOMAIN, domain);
	memcpy(message + domain, payload, len);
	if (EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, public) != 1)
		goto out;
	ret = EVP_DigestVerify(ctx, signature, SIGNATURE_BYTES, message, domain + len) == 1 ? 0 : -EBADMSG;
out:
	ERR_clear_error();
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(public);
	free(message);
	return ret;
}
#else
int signature_verify_openssl(const uint8_t key[SIGNATURE_KEY_BYTES], const uint8_t signature[SIGNATURE_BYTES],
                             const uint8_t *payload, size_t len)
{
	return -ENOTSUP;
}
#endif
