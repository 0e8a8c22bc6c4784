#!/usr/bin/env bash
# Build librdkafka once, with the options of openwrt/libs/librdkafka, from the sources of this Debian release; print its
# folder.
# It is 2.0.2 where the feed has 2.11.0: Debian's is the one that can be had here.
set -euo pipefail
. "$(dirname "$0")/static_library.sh"

make_library() {
    local dir=$1
    ./configure --CFLAGS="-Os -ffunction-sections -fdata-sections" --enable-ssl --disable-gssapi --disable-curl \
        --disable-zstd --disable-lz4-ext --disable-zlib --enable-static --disable-debug-symbols && \
        nice make -C src -j2 librdkafka.a && mkdir -p "$dir/include/librdkafka" && \
        cp src/rdkafka.h src/rdkafka_mock.h "$dir/include/librdkafka/" && cp src/librdkafka.a "$dir/librdkafka.a"
}

static_library librdkafka 2.0.2 librdkafka=2.0.2-1
