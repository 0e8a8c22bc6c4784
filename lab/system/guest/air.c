/* air.c: the guest's tool. See air.h for what each command does. */
#include "air.h"
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

static unsigned number(const char *text, unsigned most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!*text || *end || n > most)
		die(0, "%s is no number up to %u", text, most);
	return (unsigned)n;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	const int n = argc - 2;

	if (!strcmp(command, "ap") && n == 1)
		air_ap(argv[2]);
	else if (!strcmp(command, "stations") && n == 3)
		air_stations(argv[2], number(argv[3], STATIONS_MOST), number(argv[4], STATIONS_MOST));
	else if (!strcmp(command, "monitor") && n == 1)
		air_monitor(argv[2]);
	else if (!strcmp(command, "cable") && n == 2)
		air_cable(argv[2], argv[3]);
	else if (!strcmp(command, "fq_codel") && n == 1)
		air_fq_codel(argv[2]);
	else if (!strcmp(command, "traffic") && n == 6)
		air_traffic(&(struct traffic){ .wired = argv[2], .monitor = argv[3], .ap = argv[4],
					       .stations = number(argv[5], STATIONS_MOST),
					       .tcp_per_s = number(argv[6], 20000),
					       .udp_per_s = number(argv[7], 20000) });
	else if (!strcmp(command, "window") && n == 2)
		air_window(number(argv[2], 600), (int)number(argv[3], 1 << 22));
	else if (!strcmp(command, "serve") && n == 1)
		air_serve(argv[2]);
	else if (!strcmp(command, "join") && n == 1)
		air_join(argv[2]);
	else if (!strcmp(command, "to-namespace") && n == 2)
		air_to_namespace(argv[2], (int)number(argv[3], 1 << 22));
	else if (!strcmp(command, "vlan") && n == 2)
		air_vlan(argv[2], number(argv[3], 4094));
	else if (!strcmp(command, "vlan-of-bridge") && n == 2)
		air_vlan_of_bridge(argv[2], number(argv[3], 4094));
	else if (!strcmp(command, "masquerade") && n == 1)
		air_masquerade(argv[2]);
	else if (!strcmp(command, "off") && n == 0) {
		sync();
		reboot(RB_AUTOBOOT); /* the emulator ends instead */
	} else if (!strcmp(command, "known") && n == 0)
		air_known();
	else {
		fprintf(stderr, "usage: air ap IF | stations IF FROM TO | monitor IF | cable A B | fq_codel IF |\n"
				"  serve IF | join IF | to-namespace IF PID | vlan PORT ID |\n"
				"  vlan-of-bridge BRIDGE ID | masquerade IF | window SECONDS PID | known | off |\n"
				"  traffic WIRED MONITOR AP STATIONS TCP_PER_S UDP_PER_S\n");
		return 2;
	}
	return 0;
}
