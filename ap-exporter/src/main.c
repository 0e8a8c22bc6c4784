/* ap-exporter, or oal-host: lifecycle of the daemon, and its commands. */
#include "base/clock.h"
#include "base/config.h"
#include "daemon.h"
#include "wire/dump.h"
#include "enrol/enrol.h"
#include "model/inspect.h"
#include "base/log.h"
#include "base/loop.h"
#include "memory.h"
#include "oal_schema.h"
#include "mark/mark_cli.h"
#include "rewrite/rwnd_cli.h"
#include "rpcd.h"
#include "start.h"
#include "status.h"
#include "base/version.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define TICK_NICE (-10) /* a tick is short and due now */
#define TICKS_PER_SECOND (1000000 / OAL_SETTING_TICK_US)

static struct config config; /* as the one command that runs reads it; too large for the stack */

struct run {
	const char *path;
	struct config config;
	struct loop *loop;
	struct daemon *daemon;
	struct status *status;
	int signals;
	uint32_t reloads, refused;
};

static size_t health_of(void *ctx, char *buf, size_t size)
{
	return daemon_health(((struct run *)ctx)->daemon, buf, size);
}

/* A new configuration replaces the running one only once everything in it stands. */
static void reload(struct run *r)
{
	struct daemon *next;
	char err[1024];

	if (config_load(&config, r->path, err, sizeof err) < 0 ||
	    daemon_new(&next, &config, r->daemon, err, sizeof err) < 0) {
		r->refused++;
		daemon_reloaded(r->daemon, r->reloads, r->refused);
		log_error("reload refused, the old configuration goes on: %s", err);
		return;
	}
	r->reloads++;
	daemon_reloaded(next, r->reloads, r->refused);
	daemon_free(r->daemon);
	r->daemon = next;
	r->config = config;
	log_info("configuration %s reloaded", r->path);
}

static void on_signal(void *ctx, int fd)
{
	struct run *r = ctx;
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	if (info.ssi_signo == SIGHUP)
		reload(r);
	else
		loop_stop(r->loop);
}

static int serve(struct run *r)
{
	struct clock_quality clock = { 0 };
	uint64_t ticks = 0, next_second = TICKS_PER_SECOND, trim_at = 10 * TICKS_PER_SECOND; /* connected by then */
	struct tick t;
	int ret;

	clock_read(&clock);
	while ((ret = loop_wait(r->loop, &t)) > 0) {
		daemon_tick(r->daemon, &t, &clock);
		ticks += t.missed + 1u;
		if (ticks >= next_second) {
			next_second = ticks + TICKS_PER_SECOND;
			clock_read(&clock);
			daemon_second(r->daemon, &clock);
			if (ticks >= trim_at) {
				memory_trim();
				trim_at = UINT64_MAX;
			}
		}
		if (daemon_done(r->daemon))
			break;
		if (!t.more)
			loop_rest(r->loop, daemon_rest(r->daemon));
	}
	return ret < 0 ? ret : 0;
}

/* With its privileges, then without. */
static int start(struct run *r, char *err, size_t err_size)
{
	struct rights rights;
	int ret = start_with_rights(&rights, &r->config, r->loop, err, err_size);

	if (!ret)
		ret = daemon_new(&r->daemon, &r->config, NULL, err, err_size);
	if (!ret && r->status)
		ret = loop_add(r->loop, status_fd(r->status), status_serve, r->status);
	/* Only if root started it; without it more ticks are missed. */
	if (!ret && setpriority(PRIO_PROCESS, 0, TICK_NICE) < 0 && errno != EACCES && errno != EPERM)
		log_warn("cannot raise the priority: %s", strerror(errno));
	return ret ? ret : start_without_rights(&rights, err, err_size);
}

static int run(const char *path)
{
	static struct run r;
	char err[1024];
	sigset_t set;
	int ret;

	r.path = path;
	r.signals = -1;
	ret = config_load(&r.config, path, err, sizeof err);
	if (ret < 0)
		goto out;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	r.loop = loop_new(OAL_SETTING_TICK_US);
	r.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	ret = !r.loop || r.signals < 0 ? -errno : loop_add(r.loop, r.signals, on_signal, &r);
	if (ret < 0) {
		snprintf(err, sizeof err, "cannot make the timer and signal descriptors: %s", strerror(-ret));
		goto out;
	}
	if (r.config.exporter.status_socket[0]) {
		ret = status_open(&r.status, r.config.exporter.status_socket, health_of, &r, err, sizeof err);
		if (ret < 0)
			goto out;
	}
	ret = start(&r, err, sizeof err);
	if (ret < 0)
		goto out;
	log_info("%s: " OAL_HERE " %s, schema revision %d, running", OAL_VERSION, r.config.exporter.ap_id,
		 OAL_SETTING_SCHEMA_REVISION);
	ret = serve(&r);
	if (ret < 0)
		snprintf(err, sizeof err, "the event loop failed: %s", strerror(-ret));
out:
	daemon_free(r.daemon);
	start_end();
	status_close(r.status);
	if (r.signals >= 0)
		close(r.signals);
	loop_free(r.loop);
	if (ret < 0)
		log_error("%s", err);
	return ret < 0 ? 1 : 0;
}

static int check_config(const char *path)
{
	char err[1024];

	if (config_load(&config, path, err, sizeof err) < 0 || daemon_check(&config, err, sizeof err) < 0) {
		log_error("%s", err);
		return 1;
	}
	printf("%s: good; " OAL_HERE " %s\n", path, config.exporter.ap_id);
	return 0;
}

#ifdef HAVE_AGENT
static int enrol_here(const char *path, const char *ticket)
{
	char err[1024];

	if (config_load(&config, path, err, sizeof err) < 0) {
		log_error("%s", err);
		return 1;
	}
	return enrol(&config, path, ticket);
}
#endif

#ifdef HAVE_AGENT
static int rpcd(const char *path, const char *method)
{
	char err[1024];

	if (config_load(&config, path, err, sizeof err) < 0) {
		log_error("%s", err);
		return 1;
	}
	return rpcd_call(&config, method, stdin, stdout);
}
#endif

static int status(const char *path, const char *socket)
{
	char err[1024];
	int ret;

	if (!socket) {
		if (config_load(&config, path, err, sizeof err) < 0) {
			log_error("%s", err);
			return 1;
		}
		socket = config.exporter.status_socket;
	}
	ret = status_read(socket, stdout);
	if (ret < 0)
		log_error("no answer from %s: %s; is " OAL_PROGRAM " running?", socket, strerror(-ret));
	return ret < 0 ? 1 : 0;
}

#if defined(HAVE_BPF) || defined(HAVE_OVS)
#define HAVE_RWND /* a build without backends has no room for the command either */
#endif

#ifdef HAVE_RWND
/* Windows or marks, which have a section of that name, as options of the command line say, with a configuration's
 * defaults for the rest. */
static int by_hand(const char *section, const char *path, const char *options)
{
	const bool marks = !strcmp(section, "mark");
	char text[2048], err[1024];
	int ret;

	if (options[0]) {
		/* A configuration names the AP, a collector and a sink; nothing is opened. */
		snprintf(text, sizeof text,
			 "config exporter\noption ap_id rwnd\nconfig packet\noption interface lo\nconfig file\noption "
			 "path /dev/null\nconfig %s\n%s",
			 section, options);
		ret = config_parse(&config, text, strlen(text), err, sizeof err);
	} else {
		ret = config_load(&config, path, err, sizeof err);
	}
	if (!ret && !(marks ? config.n_mark : config.n_rwnd)) {
		snprintf(err, sizeof err, "%s has no section '%s': add one, or name --backend and --interface", path,
			 section);
		ret = -EINVAL;
	}
	if (ret < 0) {
		log_error("%s", err);
		return 2;
	}
	return marks ? mark_cli(&config.mark, stdin, stdout) : rwnd_cli(&config.rwnd, stdin, stdout);
}
#endif

static int usage(FILE *f)
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
		   "       %1$s mark [-c FILE | --backend bpf --interface PORT,… --max-stations N]\n"
		   "                                         sets CE in packets to stations, the same way\n"
#endif
		   "       %1$s options               every option of FILE, with default, range and meaning\n"
		   "FILE is the configuration of this %2$s, in UCI format; default %3$s\n",
		OAL_PROGRAM, OAL_HERE, CONFIG_PATH);
	return f == stderr ? 2 : 0;
}

/* --max-flows 8 as `option max_flows '8'`; its length, or 0 if there is no room. */
static size_t option_line(char *line, size_t size, const char *name, const char *value)
{
	const int n = snprintf(line, size, "option %s '%s'\n", name, value);

	if (n < 0 || (size_t)n >= size) {
		line[0] = '\0';
		return 0;
	}
	for (char *p = line; p < line + 7 + strlen(name); p++)
		if (*p == '-')
			*p = '_';
	return (size_t)n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },   { "socket", required_argument, NULL, 's' },
		{ "check-config", no_argument, NULL, 'C' },   { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },        { "keys", required_argument, NULL, 'K' },
		{ "ap", required_argument, NULL, 'A' },       { "site", required_argument, NULL, 'S' },
		{ "backend", required_argument, NULL, 'R' },  { "interface", required_argument, NULL, 'R' },
		{ "bridge", required_argument, NULL, 'R' },   { "max-flows", required_argument, NULL, 'R' },
		{ "max-stations", required_argument, NULL, 'R' },
		{ "ovs-rundir", required_argument, NULL, 'R' }, { "kill-file", required_argument, NULL, 'R' },
		{ 0 },
	};
	const char *path = CONFIG_PATH, *socket = NULL, *command = "run";
	struct inspect_terms terms = { 0 };
	char rwnd_options[1024] = "";
	size_t used = 0;
	int o, index = 0;

#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1); /* librdkafka's threads would each take an arena */
#endif
	while ((o = getopt_long(argc, argv, "c:s:hv", options, &index)) != -1) {
		switch (o) {
		case 'c': path = optarg; break;
		case 's': socket = optarg; break;
		case 'K': terms.keys = optarg; break;
		case 'A': terms.ap_id = optarg; break;
		case 'S': terms.site = optarg; break;
		case 'C': command = "check-config"; break;
		case 'R':
			used += option_line(rwnd_options + used, sizeof rwnd_options - used, options[index].name,
					    optarg);
			break;
		case 'h': return usage(stdout);
		case 'v':
			printf(OAL_PROGRAM " %s, schema revision %d\n", OAL_VERSION, OAL_SETTING_SCHEMA_REVISION);
			return 0;
		default: return usage(stderr);
		}
	}
	argc -= optind;
	argv += optind;
	if (argc > 0)
		command = *argv++, argc--;
	if (!strcmp(command, "run") && !argc)
		return run(path);
	if (!strcmp(command, "check-config") && !argc)
		return check_config(path);
	if (!strcmp(command, "status") && !argc)
		return status(path, socket);
#ifdef HAVE_RWND
	if ((!strcmp(command, "rwnd") || !strcmp(command, "mark")) && !argc)
		return by_hand(command, path, rwnd_options);
#endif
	if (!strcmp(command, "options") && !argc) {
		config_print_options(stdout);
		return 0;
	}
	if (!strcmp(command, "dump") && argc == 1)
		return dump_rows(argv[0], stdout) < 0;
	if (!strcmp(command, "count") && argc == 1)
		return dump_count(argv[0], stdout) < 0;
#ifdef HAVE_AGENT /* a build that takes no bundles has no room for looking at them either */
	if (!strcmp(command, "enrol") && argc == 1)
		return enrol_here(path, argv[0]);
	if (!strcmp(command, "rpcd") && argc == 1 && !strcmp(argv[0], "list"))
		return rpcd_list(stdout);
	if (!strcmp(command, "rpcd") && argc == 2 && !strcmp(argv[0], "call"))
		return rpcd(path, argv[1]);
	if (!strcmp(command, "bundle") && argc == 1)
		return inspect_bundle(argv[0], &terms, stdout);
	if (!strcmp(command, "predict") && argc == 1)
		return inspect_predict(argv[0], stdin, stdout);
#else
	(void)terms;
#endif
	return usage(stderr);
}
