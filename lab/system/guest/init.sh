#!/bin/sh
# First process of the guest: an access point on the kernel's simulated radio, its bridge and its wired port; then
# /plan, which is made of the functions below. Whatever goes wrong ends the guest: what says "done" at the end went
# through.
#
#   far ── eth0 ┐
#               ├ br-lan
#   stations ~~ phy0-ap0 ┘      far: puts downlink frames on the cable; mon0: uplink frames on the air

fail() {
	[ ! -e /tmp/agent.log ] || cat /tmp/agent.log
	echo "failed: $*"
	air off
}

# The radio, the bridge, the wired port; $1 stations.
access_point() {
	ip link set wlan0 name phy0-ap0 && ip link set wlan1 name mon0 || fail interfaces
	air cable eth0 far && air fq_codel eth0 || fail cable
	air ap phy0-ap0 && air monitor mon0 || fail radio
	brctl addbr br-lan && brctl addif br-lan eth0 && brctl addif br-lan phy0-ap0 || fail bridge
	for port in far eth0 br-lan; do ip link set $port up || fail $port; done
	air stations phy0-ap0 0 "$1" || fail stations
}

# $1 TCP packets a second, and two short UDP ones a second to each of the first $2 stations: these keep it active.
traffic() {
	[ -z "$source" ] || kill "$source"
	air traffic far mon0 phy0-ap0 "$2" "$1" $((2 * $2)) &
	source=$!
}

# The kernel samples the stations (ap-exporter/kmod).
module() {
	insmod /lib/oal_sampler.ko && [ -e /dev/oal-sampler ] || fail module
}

agent() {
	ap-exporter run -c "$1" 2>/tmp/agent.log &
	agent=$!
}

# What it says of itself, in one line.
agent_says() {
	echo "status $(ap-exporter status -c "$1" | tr -d '\n')"
}

agent_ends() {
	kill "$agent"
	wait "$agent" || fail "the agent ended with $?"
}

# $1 a name, $2 seconds, $3 a process or nothing: counted from mark to mark.
window() {
	echo "begin $1"
	air window "$2" "${3:-0}" || fail "window $1"
}

mount -t proc proc /proc && mount -t sysfs sysfs /sys || fail mounts
mount -t devtmpfs dev /dev && mount -t tmpfs tmp /tmp || fail mounts
echo OpenWrt >/proc/sys/kernel/hostname
mkdir -p /tmp/run && ip link set lo up
echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
echo "guest $(cat /proc/version)"
. /plan
echo "done"
air off
