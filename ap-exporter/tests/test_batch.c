/* test_batch.c: encoding and decoding against each other on random rows, and on damaged bytes. */
#include "wire/batch_decode.h"
#include "wire/batch_encode.h"
#include "check.h"
#include "base/sha256.h"
#include "packet/siphash.h"

enum { ENTITIES = 4, ROWS = 300, ROW_SIZE = 256 };
static uint64_t random_state = 4242;
static _Alignas(8) uint8_t rows[ROWS][ROW_SIZE];
static uint32_t order[ROWS], run_rows[ROWS];
static uint8_t buffer[1 << 20];

static uint64_t below(uint64_t n)
{
	return check_random(&random_state) % n;
}

static uint64_t random_value(const struct oal_column *c)
{
	const unsigned bits = c->type == OAL_T_MAC ? 48 : c->size == 8 ? 63 : c->size * 8;
	const uint64_t v = check_random(&random_state) >> (64 - bits) >> (below(3) ? below(bits) : 0);

	if (c->type == OAL_T_NAME || c->type == OAL_T_FLOW)
		return below(ENTITIES);
	if (c->kind == OAL_TICK || c->kind == OAL_TIME_US)
		return v % 60000;
	return v;
}

static void put(uint8_t *row, const struct oal_column *c, uint64_t v)
{
	void *p = row + c->offset;

	switch (c->size) {
	case 1: *(uint8_t *)p = (uint8_t)v; break;
	case 2: *(uint16_t *)p = (uint16_t)v; break;
	case 4: *(uint32_t *)p = (uint32_t)v; break;
	default: *(uint64_t *)p = v; break;
	}
}

/* Rows of several entities; most columns keep their value from row to row, as real ones do. */
static uint32_t random_rows(const struct oal_table *t)
{
	const uint32_t n = 1 + (uint32_t)below((t->max_rows < ROWS ? t->max_rows : ROWS) - 1);
	uint32_t i;
	unsigned k, n_optional = 0;

	for (k = 0; k < t->n_columns; k++)
		n_optional += t->columns[k].optional >= 0;
	memset(rows, 0, sizeof rows);
	for (i = 0; i < n; i++) {
		const bool another = !i || !below(20);

		order[i] = i * ROW_SIZE;
		if (!another)
			memcpy(rows[i], rows[i - 1], ROW_SIZE);
		else
			*(uint32_t *)(void *)rows[i] = n_optional ? (uint32_t)below(UINT64_C(1) << n_optional) : 0;
		for (k = 0; k < t->n_columns; k++)
			if (t->columns[k].kind == OAL_KEY ? another : !below(5))
				put(rows[i], &t->columns[k], random_value(&t->columns[k]));
	}
	return n;
}

static void random_flows(struct batch_flow *flows)
{
	unsigned i, k;

	memset(flows, 0, ENTITIES * sizeof *flows);
	for (i = 0; i < ENTITIES; i++) {
		flows[i].addr_len = i % 2 ? 16 : 4;
		for (k = 0; k < flows[i].addr_len; k++) {
			flows[i].client_addr[k] = (uint8_t)below(256);
			flows[i].server_addr[k] = (uint8_t)below(256);
		}
		flows[i].client_port = (uint16_t)below(65536);
		flows[i].server_port = (uint16_t)below(65536);
		flows[i].protocol = 6;
		flows[i].station_mac = below(UINT64_C(1) << 48);
		flows[i].flow_id = batch_flow_id(&flows[i]);
	}
}

static size_t encode(const struct oal_table *t, uint32_t n, const struct batch_flow *flows)
{
	static const char *const names[ENTITIES] = {"wlan0", "", "ü", "eth0"};
	const struct batch_header h = {
		.ap_id = "ap", .boot_id = 1, .t0_us = 1000, .tick_us = 4000, .ticks = 63, .schema_revision = 1,
		.names = names, .n_names = ENTITIES,
	};
	struct batch_rows r = {.table = t, .rows = rows[0], .order = order, .n_rows = n, .run_rows = run_rows};
	struct batch_writer w;

	r.n_runs = batch_find_runs(t, rows[0], order, n, run_rows, ROWS);
	batch_begin(&w, buffer, sizeof buffer);
	CHECK(batch_write_header(&w, &h) &&
	      batch_write_flows(&w, flows, t->topic == OAL_TOPIC_PACKETS ? ENTITIES : 0) && batch_write_rows(&w, &r));
	return batch_len(&w);
}

static void test_round_trip(void)
{
	struct batch_flow flows[ENTITIES], f;
	unsigned round, t;

	test("what is encoded is what is decoded, for random rows of every table");
	for (round = 0; round < 200; round++)
		for (t = 0; t < OAL_N_TABLES; t++) {
			const uint32_t n = random_rows(&oal_tables[t]);
			_Alignas(8) uint8_t row[ROW_SIZE];
			struct batch_flow_cursor fc;
			struct batch_cursor c;
			struct batch_view v;
			size_t len;
			uint32_t i;

			random_flows(flows);
			len = encode(&oal_tables[t], n, flows);
			CHECK_EQ(batch_decode(&v, oal_tables[t].topic, buffer, len, "ap", 0), BATCH_OK);
			CHECK_EQ(v.n_rows[t], n);
			for (batch_rows(&c, &v, t), i = 0; batch_next_row(&c, row) && i < n; i++)
				CHECK(!memcmp(row, rows[i], oal_tables[t].row_size));
			CHECK_EQ(i, n);
			for (batch_flows(&fc, &v), i = 0; batch_next_flow(&fc, &f); i++)
				CHECK(!memcmp(&f, &flows[i], sizeof f));
			CHECK_EQ(i, oal_tables[t].topic == OAL_TOPIC_PACKETS ? ENTITIES : 0);
			if (check_errors)
				return;
		}
}

static void test_small_buffer(void)
{
	static const uint32_t missed[2] = {1, 2};
	static const char *const names[1] = {"wlan0"};
	const struct batch_header h = {
		.ap_id = "ap", .site = "s", .boot_id = 1, .t0_us = 1000, .tick_us = 4000, .ticks = 63,
		.schema_revision = 1, .missed_start = missed, .missed_ticks = missed, .n_missed = 2, .names = names,
		.n_names = 1, .feature_hash = 7,
	};
	const uint32_t n = random_rows(&oal_tables[OAL_PACKET]);
	struct batch_rows r = {
		.table = &oal_tables[OAL_PACKET], .rows = rows[0], .order = order, .n_rows = n, .run_rows = run_rows,
	};
	struct batch_flow flows[ENTITIES];
	size_t size, full;
	unsigned i;

	test("a buffer that is too small is reported, whatever its size, and left as it was");
	random_flows(flows);
	full = encode(r.table, n, flows) + 100;
	r.n_runs = batch_find_runs(r.table, rows[0], order, n, run_rows, ROWS);
	for (size = 0; size < full; size += 1 + size / 50) {
		uint8_t *small = malloc(size ? size : 1);
		struct batch_writer w;
		bool ok[3];

		batch_begin(&w, small, size);
		ok[0] = batch_write_header(&w, &h);
		for (i = 0; i < 2; i++) {
			const size_t before = batch_len(&w);

			ok[1 + i] = i ? batch_write_rows(&w, &r) : batch_write_flows(&w, flows, ENTITIES);
			CHECK(ok[1 + i] || batch_len(&w) == before);
		}
		CHECK(batch_len(&w) <= size);
		if (ok[0] && ok[1]) {
			struct batch_view v;

			CHECK_EQ(batch_decode(&v, OAL_TOPIC_PACKETS, small, batch_len(&w), "ap", 0), BATCH_OK);
			CHECK_EQ(v.n_rows[OAL_PACKET], ok[2] ? n : 0);
		}
		free(small);
	}
}

/* Reads everything that a view offers. */
static void read_all(const struct batch_view *v)
{
	_Alignas(8) uint8_t row[ROW_SIZE];
	struct batch_missed_cursor m;
	struct batch_flow_cursor fc;
	struct batch_flow f;
	uint64_t a, b;
	unsigned t;
	uint32_t n;

	for (batch_missed(&m, v); batch_next_missed(&m, &a, &b);)
		;
	for (batch_flows(&fc, v), n = 0; batch_next_flow(&fc, &f); n++)
		CHECK(f.addr_len == 4 || f.addr_len == 16);
	CHECK_EQ(n, v->n_flows);
	for (t = 0; t < OAL_N_TABLES; t++) {
		struct batch_cursor c;

		for (batch_rows(&c, v, t), n = 0; batch_next_row(&c, row); n++)
			CHECK(batch_row_time_us(v, t, row) - v->t0_us < UINT64_C(1) << 40);
		CHECK_EQ(n, v->n_rows[t]);
	}
}

static void test_damage(void)
{
	struct batch_flow flows[ENTITIES];
	unsigned t, i, accepted = 0, refused = 0;

	test("a damaged record is refused, or read without harm");
	for (t = 0; t < OAL_N_TABLES; t++) {
		size_t len;

		random_flows(flows);
		len = encode(&oal_tables[t], random_rows(&oal_tables[t]), flows);
		for (i = 0; i < 3000; i++) {
			size_t cut = below(4) ? len : below(len);
			uint8_t *copy = malloc(cut ? cut : 1);
			struct batch_view v;
			unsigned k;

			memcpy(copy, buffer, cut);
			for (k = below(4); k && cut; k--)
				copy[below(cut)] = (uint8_t)(below(2) ? below(256) : copy[below(cut)] ^ 1u << below(8));
			if (batch_decode(&v, oal_tables[t].topic, copy, cut, NULL, 0) == BATCH_OK) {
				read_all(&v);
				accepted++;
			} else {
				refused++;
			}
			free(copy);
		}
	}
	CHECK(accepted > 100 && refused > 1000);
	test("a record over the limit is refused unread");
	{
		struct batch_view v;

		CHECK_EQ(batch_decode(&v, 0, buffer, OAL_SETTING_MAX_BATCH_BYTES + 1, NULL, 0), BATCH_OVERSIZED);
	}
}

static void test_hashes(void)
{
	static const uint8_t abc_hash[4] = {0xba, 0x78, 0x16, 0xbf};
	static const uint8_t long_hash[4] = {0x24, 0x8d, 0x6a, 0x61};
	const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	uint8_t key[16], in[15], digest[32];
	struct batch_flow f = {
		.client_addr = {10, 0, 0, 1}, .server_addr = {192, 0, 2, 7}, .addr_len = 4, .protocol = 6,
		.client_port = 5000, .server_port = 443,
	};
	unsigned i;

	test("SHA-256 as in FIPS 180-4, SipHash-2-4 as in its paper, flow ids as in the contract");
	sha256(digest, (const uint8_t *)"abc", 3);
	CHECK(!memcmp(digest, abc_hash, 4));
	sha256(digest, (const uint8_t *)text, strlen(text));
	CHECK(!memcmp(digest, long_hash, 4));
	for (i = 0; i < 16; i++)
		key[i] = (uint8_t)i;
	for (i = 0; i < 15; i++)
		in[i] = (uint8_t)i;
	CHECK(siphash(key, in, 15) == UINT64_C(0xa129ca6149be45e5));
	/* FNV-1a of 0a000001 c0000207 1388 01bb 06. */
	CHECK(batch_flow_id(&f) == UINT64_C(0xb084334bc21ba066));
}

int main(void)
{
	test_round_trip();
	test_small_buffer();
	test_damage();
	test_hashes();
	return done();
}
