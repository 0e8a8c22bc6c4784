#!/usr/bin/env bash
# Make (once) the Python environment of a lock file and print its folder. Safe to run again and in parallel.
# usage: local/venv.sh REQUIREMENTS.txt        (exact versions; lines "--no-deps NAME==V" are installed without dependencies)
set -euo pipefail
lock=$1
[ -f "$lock" ] || { echo "venv.sh: no such lock file: $lock" >&2; exit 1; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal
py=$(command -v python3)
id=$( (cat "$lock"; "$py" -c 'import sys; print(sys.version, sys.prefix)') | sha256sum | cut -c1-16)
dir=$cache/venv/$id
mkdir -p "$cache/venv"
exec 9>"$cache/venv/$id.lock"
flock 9
if [ ! -f "$dir/.complete" ]; then
    echo "setup: Python environment for $lock (once)" >&2
    rm -rf "$dir"
    "$py" -m venv "$dir"
    grep -v -e '^--no-deps ' "$lock" >"$dir/with-deps.txt" || true
    sed -n 's/^--no-deps //p' "$lock" >"$dir/no-deps.txt"
    [ ! -s "$dir/with-deps.txt" ] || "$dir/bin/pip" install -q --disable-pip-version-check -r "$dir/with-deps.txt" >&2
    [ ! -s "$dir/no-deps.txt" ] || "$dir/bin/pip" install -q --disable-pip-version-check --no-deps -r "$dir/no-deps.txt" >&2
    touch "$dir/.complete"
fi
echo "$dir"
