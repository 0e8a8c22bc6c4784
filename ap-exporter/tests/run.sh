#!/usr/bin/env bash
# Run test programs and fuzz targets one after the other and print one closing line, "N passed, N failed".
# usage: tests/run.sh PROGRAM...     (from ap-exporter/)
# A program in build/mips runs under $MIPS_RUN; one in build/fuzz is a libFuzzer target and runs for $FUZZ_SECONDS.
set -uo pipefail
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
  case $program in
  */fuzz/*)
    name=$(basename "$program")
    work=$(mktemp -d)
    if "$program" -max_total_time="${FUZZ_SECONDS:-10}" -timeout=5 -rss_limit_mb=1024 -max_len=65536 -artifact_prefix="$work/" \
        "$work" "fuzz/corpus/$name" >"$log" 2>&1; then
      passed=$((passed + 1)); echo "ok $program: $(grep -o 'Done [0-9]* runs in [0-9]* second' "$log" | tail -1)"
    else
      failed=$((failed + 1)); echo "not ok $program; input and trace:"; tail -40 "$log"
      for f in "$work"/crash-* "$work"/timeout-* "$work"/oom-*; do [ -f "$f" ] && echo "$f:" && base64 "$f" | head -20; done
    fi
    rm -rf "$work" ;;
  *)
    run=(); case $program in */mips/*) read -ra run <<<"${MIPS_RUN:-qemu-mips}" ;; esac
    "${run[@]}" "$program" >"$log" 2>&1; status=$?
    sum=$(grep -oE '^# [0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
    read -r _ p _ f _ <<<"${sum:-# 0 passed, 1 failed}"
    if [ $status -ne 0 ] && [ "$f" = 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f))
    if [ "$f" = 0 ]; then echo "ok $program: $p tests"; else echo "not ok $program (exit status $status)"; grep -v '^ok ' "$log" | tail -40; fi ;;
  esac
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
