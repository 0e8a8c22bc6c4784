#include "packet/interface.h"

#include "base/log.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void interface_init(struct interface *i, const char *name)
{
	memset(i, 0, sizeof *i);
	snprintf(i->name, sizeof i->name, "%s", name);
	interface_update(i);
}

bool interface_update(struct interface *i)
{
	unsigned before = i->index;
	struct ifreq r = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false; /* out of descriptors says nothing about the interface */
	memcpy(r.ifr_name, i->name, sizeof i->name);
	i->index = ioctl(fd, SIOCGIFINDEX, &r) == 0 ? (unsigned)r.ifr_ifindex : 0;
	close(fd);
	if (before && !i->index)
		i->losses++;
	return i->index != before;
}

bool interface_failed(struct interface *i, int error)
{
	if (error != -ENODEV && error != -ENXIO && error != -ENETDOWN)
		return false;
	if (i->index)
		i->losses++;
	i->index = 0;
	return true;
}

void interface_report(struct interface *i, const char *who)
{
	if (!i->index && !i->reported)
		log_warn("%s: interface %s is not there; looking for it once a second", who, i->name);
	else if (i->index && i->reported)
		log_info("%s: interface %s is back", who, i->name);
	i->reported = !i->index;
}
