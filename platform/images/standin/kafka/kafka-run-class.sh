#!/bin/bash
# Runs a class of Kafka, with the official script's environment: KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS,
# KAFKA_LOG4J_OPTS, KAFKA_OPTS.
set -euo pipefail
libs=("$(dirname "$0")"/../libs/*.jar)
# shellcheck disable=SC2086  # lists of options
exec java ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseG1GC} "-Dkafka.logs.dir=${LOG_DIR:-/tmp}" \
    ${KAFKA_LOG4J_OPTS:-} \
    -cp "$(IFS=:; echo "${libs[*]}")" ${KAFKA_OPTS:-} "$@"
