/*
 * The front of the rewrite: which backend is taken, what reaches it, what becomes of its failures. Its backends here
 * note what they are asked, so that each failure can be had; the real ones have tests of their own
 * (test_daemon_rwnd_bpf, rwnd.py, rwnd_ovs.py).
 */
#include "check.h"

#undef HAVE_OVS
#undef HAVE_BPF
#define HAVE_OVS
#define HAVE_BPF
#define rwnd_ovs noting_ovs
#define rwnd_bpf noting_bpf
#include "rewrite/rwnd.c"

static struct {
	int check_ovs, check_bpf, open, set, release; /* what they answer */
	unsigned sets, releases, release_alls, polls, closes;
	uint32_t bytes, ttl_ms;
	struct rwnd_flow flow; /* of the last call */
	const struct action_ops *opened;
} noted;

static int check_ovs(const void *config, char *err, size_t err_size)
{
	snprintf(err, err_size, "no bridge");
	return noted.check_ovs;
}
static int check_bpf(const void *config, char *err, size_t err_size)
{
	snprintf(err, err_size, "no kernel");
	return noted.check_bpf;
}
static int open_any(struct action *a, const void *config, char *err, size_t err_size)
{
	noted.opened = a->ops;
	a->self = &noted;
	snprintf(err, err_size, "not today");
	return noted.open;
}
static int set(struct action *a, const void *key, uint64_t bytes, uint32_t ttl_ms)
{
	noted.sets++;
	noted.flow = *(const struct rwnd_flow *)key;
	noted.bytes = (uint32_t)bytes;
	noted.ttl_ms = ttl_ms;
	return noted.set;
}
static int release(struct action *a, const void *key)
{
	noted.releases++;
	noted.flow = *(const struct rwnd_flow *)key;
	return noted.release;
}
static void release_all(struct action *a) { noted.release_alls++; }
static void poll_any(struct action *a, uint64_t now_us) { noted.polls++; }
static void stats(struct action *a, struct action_stats *s)
{
	s->ready = true;
	s->packets_seen = 7;
}
static void close_any(struct action *a) { noted.closes++; }

#define OPS \
	.open = open_any, .set = set, .release = release, .release_all = release_all, .stats = stats, .close = close_any
const struct action_ops noting_ovs = { .name = "ovs", .id = OAL_REWRITE_BACKEND_OVS, .check = check_ovs, OPS };
const struct action_ops noting_bpf = {
	.name = "bpf", .id = OAL_REWRITE_BACKEND_BPF, .learns_scale = true, .check = check_bpf, .poll = poll_any, OPS
};

static struct rwnd_flow flow(uint16_t port)
{
	return (struct rwnd_flow){
		.client_addr = { 10, 0, 0, 1 }, .server_addr = { 192, 0, 2, 7 }, .client_port = port,
		.server_port = 443, .addr_len = 4, .scale = 7, .mss_bytes = 1448,
	};
}

static struct rwnd *opened(const char *backend, int *ret, char err[256])
{
	struct config_rwnd c = { .enabled = true, .max_flows = 2 };
	struct rwnd *r;

	snprintf(c.backend, sizeof c.backend, "%s", backend);
	err[0] = '\0';
	*ret = rwnd_open(&r, &c, err, 256);
	CHECK((*ret == 0) == (r != NULL));
	return r;
}

static void choice(void)
{
	char err[256];
	struct rwnd *r;
	int ret;

	test("auto takes bpf where it works, else ovs");
	r = opened("auto", &ret, err);
	CHECK(r && rwnd_backend(r) == OAL_REWRITE_BACKEND_BPF);
	rwnd_close(r);
	noted.check_bpf = -EPERM;
	r = opened("auto", &ret, err);
	CHECK(r && rwnd_backend(r) == OAL_REWRITE_BACKEND_OVS);
	rwnd_close(r);
	CHECK_EQ(noted.closes, 2);

	test("where neither works, both say why");
	noted.check_ovs = -ENODEV;
	CHECK(!opened("auto", &ret, err));
	CHECK_EQ(ret, -ENODEV);
	CHECK(!strcmp(err, "bpf: no kernel; ovs: no bridge"));

	test("a backend that is named is taken or none is");
	noted.check_bpf = 0;
	CHECK(!opened("ovs", &ret, err));
	CHECK_EQ(ret, -ENODEV);
	CHECK(!strcmp(err, "ovs: no bridge"));
	noted.check_ovs = 0;
	r = opened("bpf", &ret, err);
	CHECK(r && noted.opened == &noting_bpf);
	rwnd_close(r);

	test("a backend that is not in this build is named");
	CHECK(!opened("nft", &ret, err));
	CHECK_EQ(ret, -EOPNOTSUPP);
	CHECK(strstr(err, "'nft'") != NULL);

	test("a backend that cannot open says why");
	noted.open = -EBUSY;
	CHECK(!opened("bpf", &ret, err));
	CHECK_EQ(ret, -EBUSY);
	CHECK(!strcmp(err, "not today"));
	noted.open = 0;
	rwnd_close(NULL);
}

static void calls(void)
{
	struct rwnd_flow f = flow(1), g = flow(2), h = flow(3);
	struct action_stats s;
	char err[256], text[512];
	struct json j = { text, sizeof text, 0 };
	uint64_t now_us;
	struct rwnd *r;
	int ret;

	r = opened("bpf", &ret, err);
	now_us = clock_monotonic_us();
	rwnd_poll(r, now_us);

	test("what is set reaches the backend, raised to the floor");
	CHECK_EQ(rwnd_set(r, &f, 1, 500), 0);
	CHECK(noted.bytes == 4 * 1448 && noted.ttl_ms == 500 && noted.flow.client_port == 1);

	test("what cannot be does not reach it, and is counted");
	noted.sets = 0;
	g.scale = 15;
	CHECK_EQ(rwnd_set(r, &g, 65536, 500), -EINVAL);
	g.scale = 7;
	CHECK_EQ(rwnd_set(r, &g, 65536, 1001), -EINVAL);
	CHECK_EQ(noted.sets, 0);
	rwnd_stats(r, &s);
	CHECK_EQ(s.errors, 2);

	test("more flows than fit do not reach it; one that was there does");
	CHECK_EQ(rwnd_set(r, &g, 65536, 1000), 0);
	CHECK_EQ(rwnd_set(r, &h, 65536, 1000), -ENOSPC);
	CHECK_EQ(noted.sets, 1);
	CHECK_EQ(rwnd_set(r, &g, 32768, 1000), 0);
	CHECK_EQ(noted.sets, 2);

	test("a clamp whose time is over is released at the next poll, and makes room");
	rwnd_poll(r, now_us + 499999);
	CHECK_EQ(noted.releases, 0);
	rwnd_poll(r, now_us + 500000);
	CHECK(noted.releases == 1 && noted.flow.client_port == 1);
	rwnd_stats(r, &s);
	CHECK(s.expired == 1 && s.in_force == 1 && s.releases == 0 && s.sets == 3 && s.ready && s.packets_seen == 7);
	CHECK_EQ(rwnd_set(r, &h, 65536, 1000), 0);

	test("a clamp that the backend refuses is none; one that it refuses to renew stays until its time is over");
	CHECK_EQ(rwnd_release(r, &h), 0);
	noted.set = -ENOTCONN;
	CHECK_EQ(rwnd_set(r, &f, 65536, 1000), -ENOTCONN);
	CHECK_EQ(rwnd_set(r, &g, 65536, 1000), -ENOTCONN);
	noted.set = 0;
	rwnd_stats(r, &s);
	CHECK_EQ(s.in_force, 1);

	test("released once, the backend is asked once; of a flow that was not clamped it is not asked");
	noted.releases = 0;
	CHECK_EQ(rwnd_release(r, &g), 0);
	CHECK_EQ(rwnd_release(r, &g), 0);
	CHECK_EQ(rwnd_release(r, &f), 0);
	CHECK_EQ(noted.releases, 1);
	noted.release = -ENOTCONN;
	CHECK_EQ(rwnd_set(r, &f, 65536, 1000), 0);
	CHECK_EQ(rwnd_release(r, &f), -ENOTCONN);
	noted.release = 0;

	test("all are released at once, and counted");
	rwnd_stats(r, &s);
	{
		const uint64_t before = s.releases;

		CHECK_EQ(rwnd_set(r, &f, 65536, 1000), 0);
		CHECK_EQ(rwnd_set(r, &g, 65536, 1000), 0);
		rwnd_release_all(r);
		rwnd_stats(r, &s);
		CHECK(s.releases - before == 2 && s.in_force == 0 && noted.release_alls == 1);
	}

	test("a scale that the backend should know itself is refused where it does not learn scales");
	f.scale = RWND_SCALE_LEARNED;
	CHECK_EQ(rwnd_set(r, &f, 65536, 1000), 0);
	rwnd_json(r, &j);
	CHECK(strstr(text, "{\"backend\": \"bpf\", \"ready\": true, \"clamps\": 1, ") == text &&
	      text[json_len(&j) - 1] == '}');
	rwnd_close(r);
	r = opened("ovs", &ret, err);
	CHECK_EQ(rwnd_set(r, &f, 65536, 1000), -EINVAL);
	rwnd_poll(r, now_us); /* ovs here has none of its own */
	rwnd_close(r);
}

int main(void)
{
	choice();
	calls();
	return done();
}
