#!/usr/bin/env bash
# Start ovsdb-server and ovs-vswitchd of `build.sh` with everything they write in one folder, in this network namespace;
# they go on in the background. Again with the same folder: ovs-vswitchd only, as after it was killed; the bridges are
# still in the database.
# usage: start.sh PROGRAMS RUNDIR       (PROGRAMS: what build.sh printed; RUNDIR: kept short, it holds sockets)
# After that: PROGRAMS/ovs-vsctl --db=unix:RUNDIR/db.sock …; OVS_RUNDIR=RUNDIR PROGRAMS/ovs-appctl …; PROGRAMS/ovs-ofctl
# … unix:RUNDIR/BRIDGE.mgmt End: kill the two pids in RUNDIR/*.pid.
set -euo pipefail
programs=$1 rundir=$2
export OVS_RUNDIR=$rundir OVS_DBDIR=$rundir OVS_LOGDIR=$rundir OVS_SYSCONFDIR=$rundir
mkdir -p "$rundir"
running() { [ -e "$rundir/$1.pid" ] && kill -0 "$(cat "$rundir/$1.pid")" 2>/dev/null; }
if ! running ovsdb-server; then
	[ -e "$rundir/conf.db" ] || "$programs/ovsdb-tool" create "$rundir/conf.db" "$programs/vswitch.ovsschema"
	"$programs/ovsdb-server" "$rundir/conf.db" --remote="punix:$rundir/db.sock" --pidfile --detach --no-chdir \
		-vconsole:off --log-file
	"$programs/ovs-vsctl" --db="unix:$rundir/db.sock" --no-wait init
fi
running ovs-vswitchd || "$programs/ovs-vswitchd" "unix:$rundir/db.sock" --pidfile --detach --no-chdir -vconsole:off \
    --log-file
