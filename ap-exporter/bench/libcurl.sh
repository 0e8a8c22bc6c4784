#!/usr/bin/env bash
# Build a small libcurl once (HTTPS by OpenSSL and nothing else), from the sources of this Debian release; print its
# folder.
set -euo pipefail
. "$(dirname "$0")/static_library.sh"

make_library() {
    local dir=$1
    local without=(nghttp2 zlib brotli zstd libidn2 libpsl librtmp libssh2 ca-bundle ca-path)
    local disable=(shared ldap ldaps rtsp ftp file dict telnet tftp pop3 imap smb smtp gopher mqtt manual proxy cookies
        alt-svc hsts ntlm tls-srp unix-sockets)
    CFLAGS="-Os -ffunction-sections -fdata-sections" ./configure --enable-static --with-openssl \
        "${without[@]/#/--without-}" "${disable[@]/#/--disable-}" && \
        nice make -C lib -j2 libcurl.la && cp -r include/curl "$dir/include/" && cp lib/.libs/libcurl.a "$dir/libcurl.a"
}

static_library libcurl 7.88.1 curl pkg-config
