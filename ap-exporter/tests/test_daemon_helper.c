/*
 * The helper as the daemon has it, in a network namespace of its own: programs on a port, the process forked, records
 * over its channel. What no daemon of ours sends ends it, and leaves nothing on the port; what keeps privileges keeps
 * no more than it needs, and the daemon none. (With the daemon and real TCP: tests/tap.py.)
 */
#include "check.h"
#include "helper/confine.h"
#include "helper/helper.h"
#include "helper/rights.h"
#include "mark/mark.h"
#include "rewrite/rwnd.h"
#include "tap/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct config_rwnd rwnd_config = {
	.enabled = true, .backend = "bpf", .interface = "port0,port1", .max_flows = 4,
};
static const struct tap_config tap_config = {
	.section = "tap", .interface = "port0", .ring_kb = 64, .max_stations = 2,
};
static const struct config_mark mark_config = {
	.enabled = true, .backend = "bpf", .interface = "port0", .max_stations = 4,
};
static const struct rights stay = { .change = false };
static struct rwnd *rwnd;
static struct mark *mark;
static void *tap;
static uint32_t number;
enum { RWND, TAP, MARK, NOBODY }; /* slots in the order in which they are made */

/* Programs of ours on port0. */
static unsigned on_port(void)
{
	FILE *f = popen("{ tc filter show dev port0 ingress; tc filter show dev port0 egress; } | "
			"grep -cE '(rwnd|tap|mark)_(up|down)'", "r");
	unsigned n = 99;

	CHECK(f && fscanf(f, "%u", &n) == 1);
	if (f)
		pclose(f);
	return n;
}

/* Programs on the port, and the helper holding them. */
static void begin(void)
{
	char err[1024] = "";

	CHECK_EQ(rwnd_open(&rwnd, &rwnd_config, err, sizeof err), 0);
	CHECK_EQ(tap_bpf.open(&tap, &tap_config, err, sizeof err), 0);
	CHECK_EQ(mark_open(&mark, &mark_config, err, sizeof err), 0);
	CHECK_EQ(helper_start(&stay, err, sizeof err), 0);
	if (err[0])
		printf("# %s\n", err);
	number = 0;
}

static void end(void)
{
	rwnd_close(rwnd);
	tap_bpf.close(tap);
	mark_close(mark);
	helper_stop();
}

static void wait_for_answer(void)
{
	struct pollfd p = { .fd = helper_fd(), .events = POLLIN };

	CHECK_EQ(poll(&p, 1, 20000), 1);
}

static pid_t helper_pid(void)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
	close(fd);
	return (pid_t)strtol(text, NULL, 10);
}

/* A line of /proc/…/status, after its name. */
static const char *field(const char *path, const char *name)
{
	static char line[256];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':') {
			fclose(f);
			line[strcspn(line, "\n")] = '\0';
			return line + strlen(name) + 2;
		}
	if (f)
		fclose(f);
	return "";
}

/* --- records */

static struct helper_record good(uint8_t command, uint8_t slot)
{
	struct helper_record r = { .magic = HELPER_MAGIC, .number = number, .command = command, .slot = slot };

	if (slot == RWND && (command == HELPER_SET || command == HELPER_RELEASE)) {
		memset(r.flow.client, 1, 16);
		memset(r.flow.server, 2, 16);
		r.flow.client_port = 5000;
		r.flow.server_port = 443;
	}
	if (slot == RWND && command == HELPER_SET) {
		r.scale = 7;
		r.bytes = 20000;
		r.mss_bytes = 1448;
		r.ttl_ms = 500;
	}
	if ((slot == TAP && command >= HELPER_SET) ||
	    (slot == MARK && (command == HELPER_SET || command == HELPER_RELEASE)))
		memcpy(r.mac, "\x02\0\0\0\1\1", 6);
	if (slot == MARK && command == HELPER_SET) {
		r.scale = MARK_ALL;
		r.bytes = 100000;
		r.ttl_ms = 500;
	}
	return r;
}

static struct helper_answer answer(void)
{
	struct helper_answer a = { 0 };

	wait_for_answer();
	CHECK_EQ(recv(helper_fd(), &a, sizeof a, 0), sizeof a);
	return a;
}

/* Carried out: the next question is answered as number `number`, and nothing was answered in between. */
static void is_taken(struct helper_record r)
{
	struct helper_record ask;
	struct helper_answer a;

	r.number = number++;
	CHECK_EQ(send(helper_fd(), &r, sizeof r, 0), sizeof r);
	ask = good(HELPER_READ, RWND);
	number++;
	CHECK_EQ(send(helper_fd(), &ask, sizeof ask, 0), sizeof ask);
	if (r.command == HELPER_ATTACH || r.command == HELPER_DETACH || r.command == HELPER_READ) {
		a = answer();
		CHECK(a.magic == HELPER_MAGIC && a.number == r.number && a.command == r.command && !a.error);
	}
	a = answer();
	CHECK(a.magic == HELPER_MAGIC && a.number == ask.number && a.command == HELPER_READ && !a.error);
}

static void good_ones(void)
{
	struct helper_record r;

	begin();
	for (unsigned command = 0; command < HELPER_COMMANDS; command++)
		is_taken(good((uint8_t)command, RWND));
	is_taken(good(HELPER_SET, TAP));
	is_taken(good(HELPER_READ, TAP));
	is_taken(good(HELPER_RELEASE, TAP));
	is_taken(good(HELPER_DETACH, TAP));
	is_taken(good(HELPER_ATTACH, TAP));
	for (unsigned command = 0; command < HELPER_COMMANDS; command++)
		is_taken(good((uint8_t)command, MARK));
	/* At their limits. */
	r = good(HELPER_SET, MARK);
	r.ttl_ms = 1000;
	r.bytes = MARK_MIN_INTERVAL_US;
	is_taken(r);
	r.scale = MARK_ECT1;
	r.bytes = 0;
	is_taken(r);
	r = good(HELPER_SET, RWND);
	r.scale = 14;
	r.ttl_ms = 1000;
	is_taken(r);
	r.scale = RWND_SCALE_LEARNED;
	r.ttl_ms = 1;
	r.mss_bytes = 88;
	r.bytes = 4 * 88;
	is_taken(r);
	r = good(HELPER_DETACH, RWND);
	r.port = 1;
	is_taken(r);
	end();
}

/* Errors of the kernel are answered and end nothing. */
static void errors(void)
{
	struct helper_record r;
	struct helper_answer a;

	begin();
	for (unsigned i = 0; i < 5; i++) {
		r = good(HELPER_SET, RWND);
		r.flow.client_port = (uint16_t)(1000 + i);
		number++;
		CHECK_EQ(send(helper_fd(), &r, sizeof r, 0), sizeof r);
	}
	a = answer();
	CHECK(a.number == 4 && a.command == HELPER_SET && a.error == -E2BIG);
	is_taken(good(HELPER_CLEAR, RWND));
	r = good(HELPER_ATTACH, RWND); /* port1, which is not there */
	r.port = 1;
	number++;
	CHECK_EQ(send(helper_fd(), &r, sizeof r, 0), sizeof r);
	a = answer();
	CHECK(a.command == HELPER_ATTACH && a.port == 1 && a.error == -ENODEV && !a.values[0]);
	CHECK_EQ(on_port(), 6);
	end();
}

/* What came ends the helper, and nothing of it is left on the port. */
static void is_refused(const char *what, const void *bytes, size_t size, int descriptor)
{
	char room[CMSG_SPACE(sizeof(int))] = "";
	struct iovec from = { (void *)(uintptr_t)bytes, size };
	struct msghdr m = { .msg_iov = &from, .msg_iovlen = 1 };
	const unsigned errors_before = check_errors;

	if (descriptor >= 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof room;
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof descriptor);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &descriptor, sizeof descriptor);
	}
	begin();
	CHECK_EQ(on_port(), 6);
	CHECK_EQ(sendmsg(helper_fd(), &m, 0), (ssize_t)size);
	while (!helper_lost()) {
		wait_for_answer();
		helper_read(NULL, helper_fd());
		if (check_errors > errors_before + 8)
			break;
	}
	CHECK_EQ(on_port(), 0);
	CHECK_EQ(rwnd_set(rwnd, &(struct rwnd_flow){ .client_addr = { 1 }, .server_addr = { 2 }, .client_port = 1,
						     .server_port = 2, .addr_len = 4, .mss_bytes = 1448 },
			  20000, 500),
		 -ENOTCONN);
	end();
	if (check_errors > errors_before)
		printf("# that was: %s\n", what);
}

#define REFUSED(command_, slot_, ...) \
	do { \
		struct helper_record r; \
		number = 0; \
		r = good(command_, slot_); \
		__VA_ARGS__; \
		is_refused(#command_ " of " #slot_ ": " #__VA_ARGS__, &r, sizeof r, -1); \
	} while (0)

static void heads(void)
{
	struct helper_record whole, two[2];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	number = 0;
	two[0] = two[1] = whole = good(HELPER_READ, RWND);
	is_refused("nothing", &whole, 0, -1);
	is_refused("a byte", &whole, 1, -1);
	is_refused("a record less a byte", &whole, sizeof whole - 1, -1);
	is_refused("a record and a byte", two, sizeof whole + 1, -1);
	is_refused("two records in a packet", two, sizeof two, -1);
	is_refused("a descriptor", &whole, sizeof whole, null);
	close(null);
	REFUSED(HELPER_READ, RWND, r.magic ^= 1);
	REFUSED(HELPER_READ, RWND, r.magic = 0);
	REFUSED(HELPER_READ, RWND, r.number = 1);
	REFUSED(HELPER_READ, RWND, r.number = UINT32_MAX);
	REFUSED(HELPER_COMMANDS, RWND, (void)0);
	REFUSED(HELPER_ENDED, RWND, (void)0);
	REFUSED(HELPER_READ, RWND, r.command = 255);
	REFUSED(HELPER_ATTACH, NOBODY, (void)0);
	REFUSED(HELPER_READ, RWND, r.slot = NOBODY);
	REFUSED(HELPER_READ, RWND, r.slot = HELPER_SLOTS);
	REFUSED(HELPER_ATTACH, RWND, r.slot = 255);
	REFUSED(HELPER_READ, RWND, r.port = 1);
	REFUSED(HELPER_READ, RWND, r.direction = 1);
	REFUSED(HELPER_READ, RWND, r.unused_too = 1);
}

static void ports(void)
{
	REFUSED(HELPER_ATTACH, RWND, r.port = 2);
	REFUSED(HELPER_ATTACH, TAP, r.port = 1);
	REFUSED(HELPER_DETACH, RWND, r.port = 255);
	REFUSED(HELPER_ATTACH, RWND, r.flow.client[0] = 1);
	REFUSED(HELPER_ATTACH, RWND, r.flow.server_port = 1);
	REFUSED(HELPER_DETACH, RWND, r.mac[5] = 1);
	REFUSED(HELPER_DETACH, TAP, r.bytes = 1);
	REFUSED(HELPER_ATTACH, TAP, r.ttl_ms = 1);
	REFUSED(HELPER_ATTACH, RWND, r.direction = 1);
	REFUSED(HELPER_ATTACH, RWND, r.unused_too = 1);
}

static void clamps(void)
{
	REFUSED(HELPER_SET, RWND, r.scale = 15);
	REFUSED(HELPER_SET, RWND, r.scale = 254);
	REFUSED(HELPER_SET, RWND, r.mss_bytes = 87; r.bytes = 4 * 87);
	REFUSED(HELPER_SET, RWND, r.mss_bytes = 0);
	REFUSED(HELPER_SET, RWND, r.bytes = 4 * 1448 - 1);
	REFUSED(HELPER_SET, RWND, r.bytes = 0);
	REFUSED(HELPER_SET, RWND, r.mss_bytes = 65535); /* whose floor is more */
	REFUSED(HELPER_SET, RWND, r.ttl_ms = 0);
	REFUSED(HELPER_SET, RWND, r.ttl_ms = 1001);
	REFUSED(HELPER_SET, RWND, r.ttl_ms = 65535);
	REFUSED(HELPER_SET, RWND, r.flow.client_port = 0);
	REFUSED(HELPER_SET, RWND, r.flow.server_port = 0);
	REFUSED(HELPER_SET, RWND, r.direction = 2);
	REFUSED(HELPER_SET, RWND, r.direction = 255);
	REFUSED(HELPER_RELEASE, RWND, r.direction = 2);
	REFUSED(HELPER_CLEAR, RWND, r.direction = 1);
	REFUSED(HELPER_SET, RWND, r.mac[0] = 1);
	REFUSED(HELPER_SET, RWND, r.port = 1);
	REFUSED(HELPER_SET, RWND, r.unused_too = 1);
	REFUSED(HELPER_RELEASE, RWND, r.flow.client_port = 0);
	REFUSED(HELPER_RELEASE, RWND, r.bytes = 1);
	REFUSED(HELPER_RELEASE, RWND, r.scale = 1);
	REFUSED(HELPER_RELEASE, RWND, r.mss_bytes = 1);
	REFUSED(HELPER_RELEASE, RWND, r.ttl_ms = 1);
	REFUSED(HELPER_RELEASE, RWND, r.mac[3] = 1);
	REFUSED(HELPER_CLEAR, RWND, r.flow.server[15] = 1);
	REFUSED(HELPER_CLEAR, RWND, r.ttl_ms = 1);
	REFUSED(HELPER_READ, RWND, r.flow.client_port = 1);
	REFUSED(HELPER_READ, RWND, r.mac[0] = 1);
}

static void stations(void)
{
	REFUSED(HELPER_SET, TAP, memset(r.mac, 0, 6));
	REFUSED(HELPER_RELEASE, TAP, memset(r.mac, 0, 6));
	REFUSED(HELPER_READ, TAP, memset(r.mac, 0, 6));
	REFUSED(HELPER_SET, TAP, r.flow.client_port = 1);
	REFUSED(HELPER_SET, TAP, r.bytes = 1);
	REFUSED(HELPER_SET, TAP, r.scale = 1);
	REFUSED(HELPER_RELEASE, TAP, r.ttl_ms = 1);
	REFUSED(HELPER_READ, TAP, r.mss_bytes = 1);
	REFUSED(HELPER_READ, TAP, r.unused_too = 1);
	REFUSED(HELPER_CLEAR, TAP, (void)0);
}

static void marks(void)
{
	REFUSED(HELPER_SET, MARK, r.scale = 0);
	REFUSED(HELPER_SET, MARK, r.scale = 4);
	REFUSED(HELPER_SET, MARK, r.scale = 255);
	REFUSED(HELPER_SET, MARK, r.bytes = 4999);
	REFUSED(HELPER_SET, MARK, r.bytes = 1000001);
	REFUSED(HELPER_SET, MARK, r.bytes = 0);
	REFUSED(HELPER_SET, MARK, r.scale = MARK_ECT1); /* and an interval */
	REFUSED(HELPER_SET, MARK, r.ttl_ms = 0);
	REFUSED(HELPER_SET, MARK, r.ttl_ms = 1001);
	REFUSED(HELPER_SET, MARK, r.mss_bytes = 1);
	REFUSED(HELPER_SET, MARK, r.mac[0] = 1);
	REFUSED(HELPER_SET, MARK, memset(r.mac, 0xff, 6));
	REFUSED(HELPER_SET, MARK, memset(r.mac, 0, 6));
	REFUSED(HELPER_SET, MARK, r.flow.client_port = 1);
	REFUSED(HELPER_RELEASE, MARK, memset(r.mac, 0, 6));
	REFUSED(HELPER_RELEASE, MARK, r.scale = 1);
	REFUSED(HELPER_CLEAR, MARK, r.mac[5] = 1);
	REFUSED(HELPER_READ, MARK, r.ttl_ms = 1);
	REFUSED(HELPER_ATTACH, MARK, r.port = 1);
}

/* --- who may what */

static void of_helper(void)
{
	char path[64];

	begin();
	is_taken(good(HELPER_CLEAR, RWND)); /* it serves */
	snprintf(path, sizeof path, "/proc/%d/status", (int)helper_pid());
	CHECK_EQ(strtoull(field(path, "CapPrm"), NULL, 16), 1ull << 12 | 1ull << 39);
	CHECK_EQ(strtoull(field(path, "CapEff"), NULL, 16), 1ull << 12 | 1ull << 39);
	CHECK_EQ(strtoull(field(path, "CapBnd"), NULL, 16), 0);
	CHECK_EQ(strtoull(field(path, "CapAmb"), NULL, 16), 0);
	CHECK_EQ(strtoull(field(path, "CapInh"), NULL, 16), 0);
	CHECK_EQ(atoi(field(path, "NoNewPrivs")), 1);
#ifndef __SANITIZE_ADDRESS__
	CHECK_EQ(atoi(field(path, "Seccomp")), 2);
#endif
	/* Root stays root here, so signals reach it; those that end the daemon do not end it before the daemon. */
	kill(helper_pid(), SIGTERM);
	kill(helper_pid(), SIGINT);
	is_taken(good(HELPER_CLEAR, RWND));
	end();
	CHECK_EQ(on_port(), 0); /* it is waited for */
}

/* Killed: the programs stay where they are, the daemon hears of it, and the next one replaces them. */
static void killed(void)
{
	begin();
	kill(helper_pid(), SIGKILL);
	while (!helper_lost()) {
		wait_for_answer();
		helper_read(NULL, helper_fd());
	}
	CHECK_EQ(on_port(), 6);
	CHECK_EQ(helper_fd(), -1);
	CHECK(helper_send(RWND, HELPER_CLEAR, &(struct helper_record){ 0 }) == -ENOTCONN);
	end();
	begin();
	end();
	CHECK_EQ(on_port(), 0);
}

#ifndef __SANITIZE_ADDRESS__
static sem_t ready, go;

/* A thread of before: what holds for the process holds for it. */
static void *another(void *failed)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)syscall(SYS_gettid));
	sem_post(&ready);
	sem_wait(&go);
	if (strtoull(field(path, "CapPrm"), NULL, 16) || strtoull(field(path, "CapEff"), NULL, 16) ||
	    atoi(field(path, "Seccomp")) != 2 || socket(AF_PACKET, SOCK_RAW, 0) >= 0)
		*(int *)failed = 1;
	return NULL;
}

static int forbidden(long ret)
{
	return ret == -1 && errno == EPERM ? 0 : 1;
}

/* In a process of its own, which cannot take back what it gives up: a bit for each that is wrong. */
static int as_daemon(bool root)
{
	const struct rights other = { .change = !root, .uid = 65534, .gid = 65534 };
	pthread_t before, after;
	char err[256] = "";
	int failed = 0, wrong = 0;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	wrong |= rights_begin(&other, err, sizeof err) < 0;
	pthread_create(&before, NULL, another, &failed);
	sem_wait(&ready);
	wrong |= rights_give_up(&other, err, sizeof err) < 0 || confine(CONFINE_DAEMON, err, sizeof err) < 0;
	wrong |= (getuid() == 0) != root;
	for (const char *const *name = (const char *const[]){ "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", NULL };
	     *name; name++)
		wrong |= (strtoull(field("/proc/self/status", *name), NULL, 16) != 0) << 1;
	wrong |= (atoi(field("/proc/self/status", "Seccomp")) != 2) << 2;
	wrong |= (atoi(field("/proc/self/status", "NoNewPrivs")) != 1) << 2;
	wrong |= forbidden(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)) << 3;
	wrong |= forbidden(execl("/bin/true", "true", NULL)) << 4;
	wrong |= forbidden(syscall(SYS_bpf, 0, NULL, 0)) << 5;
	wrong |= forbidden(socket(AF_PACKET, SOCK_RAW, 0)) << 6;
	wrong |= forbidden(ptrace(PTRACE_TRACEME, 0, 0, 0)) << 7;
	wrong |= forbidden(setuid(0)) << 8;
	wrong |= forbidden(kill(getpid(), 0)) << 9;
	sem_post(&go);
	pthread_join(before, NULL);
	wrong |= failed << 10;
	wrong |= (pthread_create(&after, NULL, another, &failed) != 0) << 11;
	sem_post(&go);
	pthread_join(after, NULL);
	if (wrong || failed)
		printf("# as %s: %x %s\n", root ? "root" : "nobody", (unsigned)wrong, err);
	fflush(stdout);
	return wrong || failed;
}

static void of_daemon(void)
{
	for (unsigned root = 0; root < 2; root++) {
		int status = -1;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid)
			_exit(as_daemon(root));
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
}
#endif

int main(void)
{
	char err[1024] = "";

	if (unshare(CLONE_NEWNET) < 0 || system("ip link add port0 type veth peer name far0") != 0) {
		skip("the helper", "network namespaces and veth need root");
		return done();
	}
	if (tap_bpf.check(&tap_config, err, sizeof err) < 0) {
		skip("the helper", err);
		return done();
	}
	test("records of every command are taken, up to their limits; only questions and failures are answered");
	good_ones();
	test("what the kernel refuses is answered, and ends nothing");
	errors();
	test("a packet that is no record ends the helper, and everything is taken off the ports: size, head, number, "
	     "slot");
	heads();
	test("so does a port that the configuration does not name, and a field that a command does not use");
	ports();
	test("so does a clamp below the floor, beyond a second, of no flow, or with a scale that there is not");
	clamps();
	test("so does a station that is none");
	stations();
	test("so do marks that there are not, for longer than a second, too often, or for a group");
	marks();
	test("the helper keeps two capabilities, may make few system calls, and ends with the daemon, not before it");
	of_helper();
	test("a helper that is killed is told of, sets fail, and the next start replaces what it left");
	killed();
#ifndef __SANITIZE_ADDRESS__
	test("the daemon keeps no capability in any set, in no thread, as root or not: no program, process, bpf() or "
	     "packet socket");
	of_daemon();
#endif
	return done();
}
