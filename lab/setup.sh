#!/usr/bin/env bash
# Everything the lab needs, once: Debian packages (no daemon is started), the guest kernel, the Python environment.
# Prints the kernel's path.
set -euo pipefail
lab=$(cd "$(dirname "$0")" && pwd)
packages=(hostapd wpasupplicant iw openvswitch-switch tcpdump ethtool iproute2 iputils-ping socat procps clang \
    libbpf-dev)
units=(hostapd wpa_supplicant openvswitch-switch ovs-vswitchd ovsdb-server ovs-record-hostname)

# The guest runs these programs; the host must not. Under systemd their units are masked while the packages are
# installed.
masks=()
unmask() { for mask in "${masks[@]}"; do rm -f "$mask"; done; }
trap unmask EXIT
if [ -d /run/systemd/system ] && ! dpkg-query -W "${packages[@]}" >/dev/null 2>&1; then
	for unit in "${units[@]}"; do
		mask=/run/systemd/system/$unit.service
		[ -e "$mask" ] || systemctl cat "$unit.service" >/dev/null 2>&1 \
			|| { ln -s /dev/null "$mask"; masks+=("$mask"); }
	done
fi
"$lab/../platform/setup/apt" "${packages[@]}"
"$lab/../platform/setup/venv" "$lab/requirements.txt" >/dev/null
"$lab/kernel/build.sh"
