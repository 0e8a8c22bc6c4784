# A plan (see init.sh): a router as OpenWrt makes one, with a real client, and the package's own files and init script.
#
#   internet's namespace          the router                         client's namespace
#   far 203.0.113.2 ── eth0 203.0.113.1, masquerade ── br-lan.10 ── phy0-ap0 ~~ wlan1 192.168.10.2
#                                                       └ lan1
in_internet() { nsenter -t "$internet" -n "$@"; }
in_client() { nsenter -t "$client" -n "$@"; }

# $1 seconds at the most, then a command that is to succeed. A second costs nothing here: time goes on at once.
until_true() {
	tries=$1
	shift
	until "$@" >/tmp/last 2>&1; do
		[ $((tries -= 1)) -gt 0 ] || { cat /tmp/last /tmp/ap-exporter.log; fail "never: $*"; }
		sleep 1
	done
}

unshare -n sleep 100000 &
internet=$!
unshare -n sleep 100000 &
client=$!
ip link set wlan0 name phy0-ap0 || fail wlan0
until_true 5 air to-namespace wlan1 "$client"
air cable eth0 far && air cable lan1 desk && air fq_codel eth0 || fail cables
until_true 5 ip link set far netns "$internet"
in_internet ip addr add 203.0.113.2/24 dev far && in_internet ip link set far up || fail internet
ip addr add 203.0.113.1/24 dev eth0 && ip link set eth0 up || fail eth0

air ap phy0-ap0 || fail ap
air serve phy0-ap0 >/tmp/serve.log &
brctl addbr br-lan && brctl addif br-lan lan1 && brctl addif br-lan phy0-ap0 || fail br-lan
echo 1 >/sys/class/net/br-lan/bridge/vlan_filtering
air vlan lan1 10 && air vlan phy0-ap0 10 && air vlan-of-bridge br-lan 10 || fail vlans
ip link add link br-lan name br-lan.10 type vlan id 10 || fail br-lan.10
for port in lan1 desk br-lan br-lan.10; do ip link set $port up || fail $port; done
ip addr add 192.168.10.1/24 dev br-lan.10 || fail address
echo 1 >/proc/sys/net/ipv4/ip_forward
air masquerade eth0 || fail masquerade

in_client air join wlan1 || fail join
until_true 10 grep -q joined /tmp/serve.log
in_client ip addr add 192.168.10.2/24 dev wlan1 && in_client ip route add default via 192.168.10.1 || fail client
until_true 10 in_client ping 203.0.113.2
echo "through the router: $(in_client ping 203.0.113.2 | grep -c alive)"

/etc/init.d/ap-exporter check || fail "the configuration is refused"
/etc/init.d/ap-exporter start || fail "the init script"
until_true 10 test -e /var/run/ap-exporter.sock
in_internet nc -l -p 8080 </dev/zero >/dev/null &
until_true 10 in_internet grep -q ':1F90 00000000:0000 0A' /proc/net/tcp
sleep 6 | in_client nc 203.0.113.2 8080 >/tmp/download &
until_true 20 test -s /tmp/download
sleep 3
echo "server's side: $(in_internet grep ':1F90 .* 01 ' /proc/net/tcp | head -n 1)"
echo "downloaded $(wc -c </tmp/download)"
/etc/init.d/ap-exporter health >/tmp/health || fail health
echo "health $(tr -d '\n' </tmp/health)"
echo "owner $(ps | grep 'ap-exporter run' | grep -v grep | head -n 1)"
/etc/init.d/ap-exporter reload || fail reload
until_true 10 grep -q reload /tmp/ap-exporter.log
daemon=$(cat /var/run/services/ap-exporter.pid)
[ -d "/proc/$daemon" ] || fail "the reload ended the daemon"
/etc/init.d/ap-exporter stop || fail stop
until_true 10 test ! -e "/proc/$daemon"
ap-exporter dump /tmp/ap-exporter.cap >/tmp/rows 2>/tmp/last || { cat /tmp/last; ls -l /tmp; fail dump; }
for table in station packet; do echo "$table $(grep "\"table\":\"$table\"" /tmp/rows | tail -n 1)"; done
cat /tmp/ap-exporter.log
