#!/usr/bin/env bash
# Build a small libcurl once (HTTPS by OpenSSL and nothing else), from the sources of this Debian release; print its folder.
set -euo pipefail
version=7.88.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal
dir=$cache/libcurl-$version-static
mkdir -p "$cache"
exec 9>"$cache/libcurl.lock"
flock 9
if [ ! -f "$dir/libcurl.a" ]; then
    echo "setup: building libcurl $version for the memory figure (once, about a minute)" >&2
    "$(dirname "$0")/../../local/apt.sh" libssl-dev dpkg-dev pkg-config >&2
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/lists/partial"
    sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/src.sources"
    apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/src.sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists")
    (cd "$work" && "${apt[@]}" update && "${apt[@]}" source --download-only curl && tar xf curl_$version.orig.tar.gz) >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
    cd "$work/curl-$version"
    without=(nghttp2 zlib brotli zstd libidn2 libpsl librtmp libssh2 ca-bundle ca-path)
    disable=(shared ldap ldaps rtsp ftp file dict telnet tftp pop3 imap smb smtp gopher mqtt manual proxy cookies alt-svc hsts ntlm tls-srp unix-sockets)
    { CFLAGS="-Os -ffunction-sections -fdata-sections" ./configure --enable-static --with-openssl "${without[@]/#/--without-}" "${disable[@]/#/--disable-}" && \
        nice make -C lib -j2 libcurl.la; } >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
    mkdir -p "$dir/include"
    cp -r include/curl "$dir/include/"
    cp lib/.libs/libcurl.a "$dir/libcurl.a"
fi
echo "$dir"
