#include "usage.h"

#include "base/config.h"
#include "base/version.h"

int usage(FILE *f)
{
	fprintf(f, "usage: %1$s [run] [-c FILE]      collect and send until SIGTERM; SIGHUP reads FILE again\n"
		   "       %1$s check-config [-c FILE]  say whether FILE is good and can work here\n"
		   "       %1$s status [-c FILE | -s SOCKET]  health of the running exporter, as JSON\n"
		   "       %1$s dump CAPTURE          rows of a capture, one a line\n"
		   "       %1$s count CAPTURE         what a capture holds\n"
#ifdef HAVE_AGENT
		   "       %1$s enrol [-c FILE] TICKET|-  gets this %2$s's key, certificate and key files with a "
		   "one-time ticket (-: from standard input)\n"
		   "       %1$s bundle FILE [--keys FILE] [--ap ID --site SITE]  what a bundle holds, and "
		   "whether it would be taken, as JSON\n"
#ifndef OAL_HOST
		   "       %1$s rpcd list | call METHOD  the ubus object of OpenWrt's rpcd\n"
#endif
		   "       %1$s predict BUNDLE        class and window for each line of features on standard "
		   "input\n"
#endif
#ifdef HAVE_RWND
		   "       %1$s rwnd [-c FILE | --backend ovs|bpf --interface PORT,… --bridge BRIDGE "
		   "--max-flows N]\n"
		   "                                         rewrites receive windows as commands on standard input "
		   "say (type one: it tells which there are)\n"
		   "       %1$s mark [-c FILE | --backend bpf|ovs --interface PORT,… --bridge BRIDGE "
		   "--max-stations N]\n"
		   "                                         sets CE in packets to stations, the same way\n"
#endif
#ifdef HAVE_CONGESTION
		   "       %1$s congestion [CGROUP]   congestion controls of connections that begin, by where they go "
		   "to, as commands on standard input say\n"
#endif
		   "       %1$s options               every option of FILE, with default, range and meaning\n"
		   "FILE is the configuration of this %2$s, in UCI format; default %3$s\n",
		OAL_PROGRAM, OAL_HERE, CONFIG_PATH);
	return f == stderr ? 2 : 0;
}
