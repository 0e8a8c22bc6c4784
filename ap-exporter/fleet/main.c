/* ap-fleet: plays a capture as many APs into Kafka, to load a platform. Not part of what an AP runs. */
#include "fleet.h"

#include "base/clock.h"
#include "oal_schema.h"
#include "base/version.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int usage(FILE *f)
{
	fprintf(f,
		"usage: ap-fleet --capture FILE --aps N --brokers HOST:PORT,…\n"
		"                (--ca FILE --certificate FILE --key FILE | --plaintext) [option…]\n"
		"       ap-fleet --capture FILE --aps N --dry [option…]\n"
		"Plays a capture (.oalcap) or pcap as N access points into Kafka, in real time and over and over,\n"
		"until SIGTERM.\n"
		"\n"
		"Real: one AP's worth of replay, deduplication, flow tracker, features and batch encoder; each AP's\n"
		"header by the encoder's own code, its MAC by the\n"
		"exporter's own, and the exporter's own Kafka producer (TLS, lz4, idempotent), shared by all of them.\n"
		"Re-stamped, not made again: a batch goes out once for every AP with that AP's ap_id, site, boot_id, "
		"seq, and all times shifted by the AP's phase,\n"
		"which spreads the APs evenly over the 252 ms of a batch. Rows, flow and station addresses are those "
		"of the one AP; no AP predicts or polls for models.\n"
		"\n"
		"  --capture FILE     what to play, for instance lab/captures/congested.oalcap\n"
		"  --aps N            access points: PREFIX-0001 to PREFIX-N (1 to 100000)\n"
		"  --prefix PREFIX    their names' beginning (fleet)\n"
		"  --site SITE        their site (none)\n"
		"  --from M           begin with M of them (N)\n"
		"  --rate-step K      then K more …\n"
		"  --step-s S         … every S seconds (30)\n"
		"  --seconds S        end after S seconds\n"
		"  --brokers LIST     --ca FILE  --certificate FILE  --key FILE  --plaintext  --topic-prefix PREFIX: "
		"as in section `kafka` of the exporter\n"
		"  --producers P      Kafka producers that share the APs (1 to 16; 1)\n"
		"  --buffer-kb KB     what each may hold; more is let go and counted (65536)\n"
		"  --mac-masters FILE sign with the platform's newest master key (lines KEY_ID BASE64); only for "
		"simulations: no AP has it\n"
		"  --dry              make, stamp and sign, but send nothing\n"
		"\n"
		"Once a second a JSON line on standard output: t_us; aps; batches, rows and bytes (before compression) "
		"handed over, delivered, let_go, errors, all since the\n"
		"start; late_us (how long after its time the latest batch of this second was handed over: when it "
		"grows, the generator itself is too slow); cpu_s of this process.\n"
		"The last line has \"end\": true.\n");
	return f == stderr ? 2 : 0;
}

static void print_counts(const struct fleet_counts *c, unsigned aps, bool end)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("{\"t_us\": %" PRIu64 ", \"aps\": %u, \"batches\": %" PRIu64 ", \"rows\": %" PRIu64
	       ", \"bytes\": %" PRIu64 ", \"delivered\": %" PRIu64 ", \"let_go\": %" PRIu64 ", \"errors\": %" PRIu64
	       ", \"late_us\": %" PRIu64 ", \"cpu_s\": %.3f%s}\n",
	       clock_realtime_us(), aps, c->batches, c->rows, c->bytes, c->delivered, c->let_go, c->errors,
	       c->late_max_us,
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
	       end ? ", \"end\": true" : "");
	fflush(stdout);
}

/* A tick of the exporter at a time. False: Kafka takes nothing any more. */
static bool play(struct fleet *f, const struct fleet_options *o)
{
	const uint64_t began_us = clock_monotonic_us();
	uint64_t next_us = began_us, second_us = began_us + 1000000, step_us = began_us + o->step_s * UINT64_C(1000000),
		 errors = 0;
	struct fleet_counts c;
	char why[256];

	while (!stopped && (!o->seconds || clock_monotonic_us() < began_us + o->seconds * UINT64_C(1000000))) {
		const struct timespec at = {.tv_sec = (time_t)(next_us / 1000000),
					    .tv_nsec = (long)(next_us % 1000000) * 1000};
		uint64_t now_us;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		now_us = clock_monotonic_us();
		fleet_run(f, clock_realtime_us(), now_us);
		next_us = now_us - now_us % OAL_SETTING_TICK_US + OAL_SETTING_TICK_US;
		if (o->step && now_us >= step_us) {
			fleet_grow(f, fleet_aps(f) + o->step);
			step_us += o->step_s * UINT64_C(1000000);
		}
		if (now_us < second_us)
			continue;
		second_us += 1000000;
		fleet_counts(f, &c);
		print_counts(&c, fleet_aps(f), false);
		if (c.errors != errors)
			fprintf(stderr, "ap-fleet: %s\n", c.last_error);
		errors = c.errors;
		if (fleet_failed(f, why, sizeof why)) {
			fprintf(stderr, "ap-fleet: the producer cannot go on: %s\n", why);
			return false;
		}
	}
	return true;
}

/* 0 to the caller's `most`; ends the program with what is wrong. */
static unsigned number(const char *name, const char *text, unsigned least, unsigned most)
{
	char *end;
	const unsigned long v = strtoul(text, &end, 10);

	if (!*text || *end || v < least || v > most) {
		fprintf(stderr, "ap-fleet: --%s is '%s'; it is a number from %u to %u\n", name, text, least, most);
		exit(2);
	}
	return (unsigned)v;
}

static void text(char *out, size_t size, const char *name, const char *value)
{
	if (strlen(value) >= size) {
		fprintf(stderr, "ap-fleet: --%s is longer than %zu bytes\n", name, size - 1);
		exit(2);
	}
	memcpy(out, value, strlen(value) + 1);
}

int main(int argc, char **argv)
{
	enum {
		CAPTURE,
		APS,
		PREFIX,
		SITE,
		FROM,
		STEP,
		STEP_S,
		SECONDS,
		BROKERS,
		CA,
		CERTIFICATE,
		KEY,
		PLAINTEXT,
		TOPICS,
		PRODUCERS,
		BUFFER,
		MASTERS,
		DRY
	};
	static const struct option options[] = {
		{"capture", required_argument, NULL, CAPTURE},
		{"aps", required_argument, NULL, APS},
		{"prefix", required_argument, NULL, PREFIX},
		{"site", required_argument, NULL, SITE},
		{"from", required_argument, NULL, FROM},
		{"rate-step", required_argument, NULL, STEP},
		{"step-s", required_argument, NULL, STEP_S},
		{"seconds", required_argument, NULL, SECONDS},
		{"brokers", required_argument, NULL, BROKERS},
		{"ca", required_argument, NULL, CA},
		{"certificate", required_argument, NULL, CERTIFICATE},
		{"key", required_argument, NULL, KEY},
		{"plaintext", no_argument, NULL, PLAINTEXT},
		{"topic-prefix", required_argument, NULL, TOPICS},
		{"producers", required_argument, NULL, PRODUCERS},
		{"buffer-kb", required_argument, NULL, BUFFER},
		{"mac-masters", required_argument, NULL, MASTERS},
		{"dry", no_argument, NULL, DRY},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	static struct fleet_options o = {
		.prefix = "fleet",
		.site = "",
		.step_s = 30,
		.producers = 1,
		.config = {.n_kafka = 1,
			   .kafka = {.enabled = true, .inflight_kb = 32768, .linger_ms = 20, .flush_ms = 5000}}};
	struct config_kafka *k = &o.config.kafka;
	const struct sigaction act = {.sa_handler = on_signal};
	struct fleet_counts c;
	struct fleet *f;
	char err[1024];
	int i, index = 0;
	bool good;

	while ((i = getopt_long(argc, argv, "h", options, &index)) != -1) {
		const char *name = options[index].name;

		switch (i) {
		case CAPTURE: o.capture = optarg; break;
		case APS: o.aps = number(name, optarg, 1, 100000); break;
		case PREFIX: o.prefix = optarg; break;
		case SITE: o.site = optarg; break;
		case FROM: o.from = number(name, optarg, 1, 100000); break;
		case STEP: o.step = number(name, optarg, 1, 100000); break;
		case STEP_S: o.step_s = number(name, optarg, 1, 86400); break;
		case SECONDS: o.seconds = number(name, optarg, 1, 864000); break;
		case BROKERS: text(k->brokers, sizeof k->brokers, name, optarg); break;
		case CA: text(k->ca, sizeof k->ca, name, optarg); break;
		case CERTIFICATE: text(k->certificate, sizeof k->certificate, name, optarg); break;
		case KEY: text(k->key, sizeof k->key, name, optarg); break;
		case PLAINTEXT: k->plaintext = true; break;
		case TOPICS: text(k->topic_prefix, sizeof k->topic_prefix, name, optarg); break;
		case PRODUCERS: o.producers = number(name, optarg, 1, 16); break;
		case BUFFER: k->inflight_kb = number(name, optarg, 4096, 1048576) / 2; break;
		case MASTERS: o.mac_masters = optarg; break;
		case DRY: o.dry = true; break;
		case 'h': return usage(stdout);
		case 'v':
			printf("ap-fleet %s, schema revision %d\n", OAL_VERSION, OAL_SETTING_SCHEMA_REVISION);
			return 0;
		default: return usage(stderr);
		}
	}
	if (argc > optind || !o.capture || !o.aps || (!o.dry && !k->brokers[0]) ||
	    (!o.dry && !k->plaintext && (!k->ca[0] || !k->certificate[0] || !k->key[0])))
		return usage(stderr);
	if (strlen(o.prefix) > 56 || strlen(o.site) > 64) {
		fprintf(stderr, "ap-fleet: --prefix has at most 56 characters, --site 64\n");
		return 2;
	}
	snprintf(o.config.exporter.ap_id, sizeof o.config.exporter.ap_id, "%s", o.prefix);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	o.start_us = clock_realtime_us();
	if (fleet_new(&f, &o, err, sizeof err) < 0) {
		fprintf(stderr, "ap-fleet: %s\n", err);
		return 1;
	}
	good = play(f, &o);
	i = (int)fleet_aps(f);
	fleet_end(f, &c);
	print_counts(&c, (unsigned)i, true);
	return good ? 0 : 1;
}
