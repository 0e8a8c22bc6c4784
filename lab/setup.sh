#!/usr/bin/env bash
# Everything the lab needs, once: Debian packages (no daemon is started), the guest kernel, the Python environment.
# Prints the kernel's path.
set -euo pipefail
lab=$(cd "$(dirname "$0")" && pwd)
daemons() { ps -eo comm= | grep -Ex 'hostapd|wpa_supplicant|ovs-vswitchd|ovsdb-server' | sort | uniq -c || true; }
before=$(daemons)
"$lab/../local/apt.sh" hostapd wpasupplicant iw openvswitch-switch tcpdump ethtool iproute2 iputils-ping socat procps
after=$(daemons)
[ "$before" = "$after" ] || { echo "lab: installing packages started a daemon; stop it and run again:" >&2; echo "$after" >&2; exit 1; }
"$lab/../local/venv.sh" "$lab/requirements.txt" >/dev/null
"$lab/kernel/build.sh"
