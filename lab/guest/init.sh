#!/bin/bash
# PID 1 of the guest: mounts, then the scenario, then power off. The root is the host's, read-only; only OUT is writable
# there. Kernel command line (the kernel hands unknown words to init as environment): LAB=folder of lab/, OUT=host
# folder for results, MAIN=another program than the scenario player
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mkdir -p /run/netns /run/out /run/lab
[ -n "$OUT" ] && mount -t hostfs out /run/out -o "$OUT"
# LAB and the exporter may lie below /tmp on the host: keep the host's view of it before covering it
mkdir -p /run/host
mount -t hostfs host /run/host -o /
mount -t tmpfs tmp /tmp
ip link set lo up
cd "/run/host$LAB" || exit 1
exec </dev/null
python3 -m "${MAIN:-guest}" /run/out/plan.json >/run/out/guest.log 2>&1
echo "exit $?" >/run/out/guest.exit
sync
python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'	# LINUX_REBOOT_CMD_POWER_OFF
