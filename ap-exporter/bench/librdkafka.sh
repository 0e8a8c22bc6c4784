#!/usr/bin/env bash
# Build librdkafka once, with the options of openwrt/libs/librdkafka, from the sources of this Debian release; print its folder.
# It is 2.0.2 where the feed has 2.11.0: Debian's is the one that can be had here.
set -euo pipefail
version=2.0.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal
dir=$cache/librdkafka-$version-static
mkdir -p "$cache"
exec 9>"$cache/librdkafka.lock"
flock 9
if [ ! -f "$dir/librdkafka.a" ]; then
    echo "setup: building librdkafka $version for the memory figure (once, about a minute)" >&2
    "$(dirname "$0")/../../local/apt.sh" libssl-dev dpkg-dev >&2
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/lists/partial"
    sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/src.sources"
    apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/src.sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists")
    (cd "$work" && "${apt[@]}" update && "${apt[@]}" source --download-only "librdkafka=$version-1" && tar xf librdkafka_$version.orig.tar.gz) >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
    cd "$work/librdkafka-$version"
    { ./configure --CFLAGS="-Os -ffunction-sections -fdata-sections" --enable-ssl --disable-gssapi --disable-curl --disable-zstd \
        --disable-lz4-ext --disable-zlib --enable-static --disable-debug-symbols && nice make -C src -j2 librdkafka.a; } >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
    mkdir -p "$dir/include/librdkafka"
    cp src/rdkafka.h src/rdkafka_mock.h "$dir/include/librdkafka/"
    cp src/librdkafka.a "$dir/librdkafka.a"
fi
echo "$dir"
