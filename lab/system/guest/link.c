#include "air.h"
#include "request.h"

#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sys/socket.h>
#include <unistd.h>

void air_cable(const char *a, const char *b)
{
	const struct ifinfomsg none = { 0 };
	int fd = request_socket(NETLINK_ROUTE), ret;
	size_t info, data, peer;
	struct request r;

	request_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &none, sizeof none);
	request_text(&r, IFLA_IFNAME, a);
	info = request_open(&r, IFLA_LINKINFO);
	request_text(&r, IFLA_INFO_KIND, "veth");
	data = request_open(&r, IFLA_INFO_DATA);
	peer = request_open(&r, VETH_INFO_PEER);
	request_raw(&r, &none, sizeof none);
	request_text(&r, IFLA_IFNAME, b);
	request_close(&r, peer);
	request_close(&r, data);
	request_close(&r, info);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "no cable from %s to %s", a, b);
	close(fd);
}

void air_fq_codel(const char *interface)
{
	const struct tcmsg root = { .tcm_ifindex = (int)interface_index(interface), .tcm_parent = TC_H_ROOT };
	int fd = request_socket(NETLINK_ROUTE), ret;
	struct request r;

	request_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &root, sizeof root);
	request_text(&r, TCA_KIND, "fq_codel");
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "no fq_codel on %s", interface);
	close(fd);
}

static void bridge_vlan(const char *interface, uint16_t type, uint16_t vlan, uint16_t vlan_flags, uint16_t whose)
{
	const struct ifinfomsg port = { .ifi_family = AF_BRIDGE, .ifi_index = (int)interface_index(interface) };
	const struct bridge_vlan_info info = { .flags = vlan_flags, .vid = vlan };
	int fd = request_socket(NETLINK_ROUTE), ret;
	struct request r;
	size_t spec;

	request_begin(&r, type, 0, &port, sizeof port);
	spec = request_open(&r, IFLA_AF_SPEC);
	if (whose)
		request_u16(&r, IFLA_BRIDGE_FLAGS, whose);
	request_put(&r, IFLA_BRIDGE_VLAN_INFO, &info, sizeof info);
	request_close(&r, spec);
	ret = request_send(fd, &r);
	if (ret)
		die(-ret, "VLAN %u of %s", vlan, interface);
	close(fd);
}

void air_vlan(const char *port, unsigned vlan)
{
	bridge_vlan(port, RTM_DELLINK, 1, 0, 0);
	bridge_vlan(port, RTM_SETLINK, (uint16_t)vlan, BRIDGE_VLAN_INFO_PVID | BRIDGE_VLAN_INFO_UNTAGGED, 0);
}

void air_vlan_of_bridge(const char *bridge, unsigned vlan)
{
	bridge_vlan(bridge, RTM_SETLINK, (uint16_t)vlan, 0, BRIDGE_FLAGS_SELF);
}
