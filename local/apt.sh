#!/usr/bin/env bash
# Install the Debian packages named on the command line, those that are missing, once. Safe to run again and in parallel.
# usage: local/apt.sh PACKAGE...
# The versions are those of the Debian release this runs on: Debian keeps one version per release, so the release is the pin.
set -euo pipefail
missing() { for p in "$@"; do dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || printf '%s\n' "$p"; done; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oal
mkdir -p "$cache"
exec 9>"$cache/apt.lock"
[ -n "$(missing "$@")" ] || exit 0
flock 9
mapfile -t need < <(missing "$@")
[ ${#need[@]} -gt 0 ] || exit 0
command -v apt-get >/dev/null || { echo "setup: needs these Debian packages, and there is no apt-get here: ${need[*]}" >&2; exit 1; }
sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
echo "setup: installing Debian packages: ${need[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
if [ -z "$(find /var/lib/apt/lists -name '*_Packages*' -mmin -720 2>/dev/null | head -1)" ]; then $sudo apt-get update -qq >&2; fi
$sudo apt-get install -y -qq --no-install-recommends "${need[@]}" >"$cache/apt.log" 2>&1 || { tail -20 "$cache/apt.log" >&2; exit 1; }
