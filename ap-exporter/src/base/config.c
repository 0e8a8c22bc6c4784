#include "base/config.h"

#include "base/text_file.h"
#include "base/uci.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX_BYTES 65536

enum kind { TEXT, NUMBER, SWITCH };

struct option {
	const char *name;
	enum kind kind;
	size_t at, size;           /* in the section's struct */
	const char *text;          /* default of TEXT */
	uint32_t value, min, max;  /* default and range of NUMBER; default of SWITCH */
	bool required, list;       /* list: several values are joined by a comma */
	const char *help;          /* with the unit */
};

struct section {
	const char *type;
	size_t at, size, count_at;
	uint32_t most;
	const struct option *options;
	uint32_t n_options;
	const char *help;
};

#define T(s, f, def, req, lst, hlp) \
	{ #f, TEXT, offsetof(struct config_##s, f), sizeof ((struct config_##s *)0)->f, def, 0, 0, 0, req, lst, hlp }
#define N(s, f, def, lo, hi, hlp) { #f, NUMBER, offsetof(struct config_##s, f), 4, "", def, lo, hi, false, false, hlp }
#define S(s, f, def, hlp) { #f, SWITCH, offsetof(struct config_##s, f), 1, "", def, 0, 1, false, false, hlp }
#define ENABLED(s) S(s, enabled, 1, "0 leaves this section out")

static const struct option exporter_options[] = {
	ENABLED(exporter),
	T(exporter, ap_id, "", false, false, "name of this AP: the Kafka key, and the CN of its certificate; empty: the host's name"),
	T(exporter, site, "", false, false, "site the AP belongs to"),
	T(exporter, user, "", false, false, "user to become once everything is open; empty: stay"),
	T(exporter, status_socket, "/var/run/ap-exporter.sock", false, false, "unix socket that answers with health as JSON; empty: none"),
	T(exporter, pseudonym_key, "", false, false, "file with a key of 16 bytes: addresses leave the AP as keyed hashes; empty: as they are"),
	N(exporter, max_stations, 64, 1, 512, "stations followed at once"),
	N(exporter, max_flows, 512, 16, 4096, "TCP flows followed at once"),
};
static const struct option nl80211_options[] = {
	ENABLED(nl80211),
	T(nl80211, interface, "", true, false, "AP interface"),
	N(nl80211, idle_interval_ticks, 25, 1, 250, "ticks between samples of stations without traffic, and between looks for new ones"),
	N(nl80211, active_hold_ticks, 250, 1, 25000, "ticks without traffic after which a station counts as idle"),
	N(nl80211, channel_interval_ticks, 1, 1, 2500, "ticks between looks at the channel survey"),
	N(nl80211, queue_interval_ticks, 5, 1, 2500, "ticks between looks at the interface's own transmit queue"),
};
static const struct option qdisc_options[] = {
	ENABLED(qdisc),
	T(qdisc, interface, "", true, false, "interface whose queueing disciplines are sampled"),
	N(qdisc, interval_ticks, 1, 1, 2500, "ticks between samples"),
};
static const struct option packet_options[] = {
	ENABLED(packet),
	T(packet, interface, "", true, false, "wired port on which TCP headers are read, both directions"),
	N(packet, ring_kb, 512, 64, 65536, "kernel ring, KiB: 8 KiB hold 46 packets or 4 ms, whichever comes first"),
	N(packet, snaplen, 96, 80, 256, "bytes kept of each frame; 96 holds IPv4 or IPv6 and TCP with options, not payload"),
};
static const struct option beacon_options[] = {
	ENABLED(beacon),
	T(beacon, interface, "", true, false, "interface whose scan results are read"),
	N(beacon, interval_ticks, 25, 1, 2500, "ticks between reads"),
};
static const struct option neigh_options[] = {
	ENABLED(neigh),
	T(neigh, interface, "", true, false, "Wi-Fi side interface of a routed AP: its neighbour table gives a flow its station"),
	N(neigh, interval_ms, 1000, 100, 60000, "ms between reads"),
};
static const struct option replay_options[] = {
	ENABLED(replay),
	T(replay, file, "", true, false, "capture of the file sink, or a pcap or pcapng file of TCP traffic"),
	S(replay, loop, 1, "1: starts over at its end; 0: the exporter ends with it"),
	N(replay, aps, 1, 1, 64, "virtual APs; more than one are named PREFIX-0001, PREFIX-0002, …"),
	T(replay, ap_prefix, "", false, false, "their PREFIX; empty: the exporter's ap_id"),
	N(replay, speed_percent, 100, 1, 10000, "percent of the recorded pace"),
	T(replay, client_net, "", false, false, "pcap: network of the Wi-Fi side, like 192.168.1.0/24; empty: the side that opened the connection"),
};
static const struct option kafka_options[] = {
	ENABLED(kafka),
	T(kafka, brokers, "", true, true, "HOST:PORT, several as a list or separated by commas"),
	T(kafka, ca, "", false, false, "PEM file of the authority that signed the brokers"),
	T(kafka, certificate, "", false, false, "PEM file of this AP's certificate"),
	T(kafka, key, "", false, false, "PEM file of its private key"),
	T(kafka, mac_keys, "", false, false, "file of MAC keys, lines AP_ID SITE KEY_ID BASE64: batches are signed with this AP's; empty: they are not"),
	S(kafka, plaintext, 0, "1: no TLS; for a loopback listener only"),
	T(kafka, topic_prefix, "", false, false, "put before ap.samples.v1, ap.packets.v1 and ap.events.v1"),
	N(kafka, buffer_kb, 2048, 64, 1048576, "newest batches kept while Kafka is away, KiB before compression"),
	N(kafka, inflight_kb, 256, 32, 65536, "handed to the producer and not yet acknowledged, KiB"),
	N(kafka, linger_ms, 20, 0, 1000, "ms to wait for more batches of a topic before sending"),
	N(kafka, flush_ms, 5000, 0, 60000, "ms to wait at the end for what is on its way"),
};
static const struct option file_options[] = {
	ENABLED(file),
	T(file, path, "", true, false, "capture to write; an existing one is replaced"),
	N(file, max_mb, 0, 0, 1048576, "MiB after which nothing more is written; 0: no limit"),
};

static const struct option agent_options[] = {
	ENABLED(agent),
	T(agent, url, "", true, false, "push service, like https://push.example.net:8443"),
	T(agent, ca, "", true, false, "PEM file of the authority that signed the push service"),
	T(agent, cert, "", true, false, "PEM file of this AP's certificate; %s in it stands for the AP's id"),
	T(agent, key, "", true, false, "PEM file of its private key; %s likewise"),
	T(agent, trusted_keys, "", true, false, "file of public keys, one a line (ed25519 BASE64 NAME): only bundles signed by one of them are used"),
	T(agent, state_dir, "", false, false, "folder on flash for the last good bundle; empty: it is not kept over a restart"),
	N(agent, wait_s, 60, 1, 300, "s that a request for news waits at the service"),
	N(agent, store_interval_s, 60, 0, 86400, "s between writes of a changed bundle to flash, at least"),
	N(agent, retry_max_s, 60, 1, 3600, "s between attempts while the service fails, at most; it begins with half a second"),
	N(agent, neighbours_s, 5, 0, 3600, "s between questions about the other APs on a radio's channel; 0: it does not ask"),
};
static const struct option rwnd_options[] = {
	ENABLED(rwnd),
	T(rwnd, mode, "shadow", false, false, "off, shadow or enforce: the most that a policy may do on this AP; shadow decides and reports, and writes nothing"),
	T(rwnd, backend, "auto", false, false, "auto, ovs (the bridge's rewrite_rwnd action) or bpf (a tc program); auto takes ovs where it is"),
	T(rwnd, interface, "", false, true, "bpf: Wi-Fi ports where the clients' ACKs come in; empty: those of the nl80211 sections"),
	T(rwnd, bridge, "br-lan", false, false, "ovs: name of the bridge"),
	T(rwnd, ovs_rundir, "/var/run/openvswitch", false, false, "ovs: folder of the bridge's management socket"),
	T(rwnd, kill_file, "/var/run/ap-exporter.kill", false, false, "while this file exists nothing is clamped; empty: none"),
	N(rwnd, max_flows, 256, 1, 4096, "flows clamped at once, at most"),
};

#define SECTION(t, n, hlp) \
	{ #t, offsetof(struct config, t), sizeof(struct config_##t), offsetof(struct config, n_##t), \
	  sizeof ((struct config *)0)->t / sizeof(struct config_##t), t##_options, sizeof t##_options / sizeof t##_options[0], hlp }

static const struct section sections[] = {
	SECTION(exporter, n_exporter, "the AP and the daemon"),
	SECTION(nl80211, n_nl80211, "collector: stations, channel and interface queue of a Wi-Fi interface"),
	SECTION(qdisc, n_qdisc, "collector: queueing disciplines of an interface"),
	SECTION(packet, n_packet, "collector: TCP headers on a wired port"),
	SECTION(beacon, n_beacon, "collector: neighbour BSSs in an interface's scan results"),
	SECTION(neigh, n_neigh, "collector: addresses of stations, on a routed AP"),
	SECTION(replay, n_replay, "collector: plays a file as one or several APs"),
	SECTION(kafka, n_kafka, "sink: Kafka"),
	SECTION(file, n_file, "sink: a capture file"),
	SECTION(agent, n_agent, "pulls models from the push service, and predicts with them"),
	SECTION(rwnd, n_rwnd, "control: lowers receive windows of flows before a queue overflows"),
};
#define N_SECTIONS (sizeof sections / sizeof sections[0])

struct reading {
	struct config *config;
	const struct section *section; /* open one */
	unsigned char *base;           /* its struct */
	uint64_t given;                /* bit i: option i was given */
	char label[CONFIG_NAME + 32];  /* how errors call it */
};

static void defaults(const struct section *s, unsigned char *base)
{
	memset(base, 0, s->size);
	for (uint32_t i = 0; i < s->n_options; i++) {
		const struct option *o = &s->options[i];

		if (o->kind == TEXT)
			memcpy(base + o->at, o->text, strlen(o->text) + 1);
		else if (o->kind == NUMBER)
			memcpy(base + o->at, &o->value, 4);
		else
			*(bool *)(base + o->at) = o->value;
	}
}

/* The open section has ended: a required option must be there; a disabled section is forgotten. */
static int close_section(struct reading *r, char *err, size_t err_size)
{
	const struct section *s = r->section;
	uint32_t *count;

	if (!s)
		return 0;
	r->section = NULL;
	count = (uint32_t *)((unsigned char *)r->config + s->count_at);
	if (!*(bool *)r->base) { /* `enabled` is the first member of every section's struct */
		--*count;
		defaults(s, r->base);
		return 0;
	}
	for (uint32_t i = 0; i < s->n_options; i++) {
		if (s->options[i].required && !(r->given >> i & 1)) {
			snprintf(err, err_size, "%s before this line needs 'option %s' (%s)", r->label, s->options[i].name,
				 s->options[i].help);
			return -EINVAL;
		}
	}
	return 0;
}

static int open_section(void *ctx, const char *type, const char *name, char *err, size_t err_size)
{
	struct reading *r = ctx;
	int ret = close_section(r, err, err_size);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < N_SECTIONS; i++) {
		const struct section *s = &sections[i];
		uint32_t *count = (uint32_t *)((unsigned char *)r->config + s->count_at);

		if (strcmp(s->type, type))
			continue;
		if (*count >= s->most) {
			snprintf(err, err_size, "more than %u section%s of type '%s'", s->most, s->most > 1 ? "s" : "", type);
			return -EINVAL;
		}
		r->section = s;
		r->base = (unsigned char *)r->config + s->at + *count * s->size;
		r->given = 0;
		snprintf(r->label, sizeof r->label, "section '%s%s%.64s'", type, name[0] ? " " : "", name);
		++*count;
		defaults(s, r->base);
		return 0;
	}
	snprintf(err, err_size, "unknown section type '%.64s'; known: exporter nl80211 qdisc packet beacon neigh replay kafka file agent rwnd", type);
	return -EINVAL;
}

static int set_number(const struct option *o, unsigned char *base, const char *value, char *err, size_t err_size)
{
	char *end;
	unsigned long long v;
	uint32_t n;

	errno = 0;
	v = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || v < o->min || v > o->max) {
		snprintf(err, err_size, "option '%s' is '%.64s'; it is a number from %u to %u (%s)", o->name, value, o->min, o->max, o->help);
		return -EINVAL;
	}
	n = (uint32_t)v;
	memcpy(base + o->at, &n, 4);
	return 0;
}

static int set_switch(const struct option *o, unsigned char *base, const char *value, char *err, size_t err_size)
{
	static const char *const on[] = { "1", "yes", "on", "true", "enabled" }, *const off[] = { "0", "no", "off", "false", "disabled" };

	for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
		if (strcmp(value, on[i]) && strcmp(value, off[i]))
			continue;
		*(bool *)(base + o->at) = !strcmp(value, on[i]);
		return 0;
	}
	snprintf(err, err_size, "option '%s' is '%.64s'; it is 0 or 1 (%s)", o->name, value, o->help);
	return -EINVAL;
}

static int set_text(const struct option *o, unsigned char *base, const char *value, bool append, char *err, size_t err_size)
{
	char *text = (char *)base + o->at;
	size_t have = append ? strlen(text) : 0, need = strlen(value);

	if (have + need + 2 > o->size) {
		snprintf(err, err_size, "option '%s' is longer than %zu bytes", o->name, o->size - 2);
		return -EINVAL;
	}
	if (have)
		text[have++] = ',';
	memcpy(text + have, value, need + 1);
	return 0;
}

static int set_option(void *ctx, const char *name, const char *value, bool list, char *err, size_t err_size)
{
	struct reading *r = ctx;

	for (uint32_t i = 0; i < r->section->n_options; i++) {
		const struct option *o = &r->section->options[i];
		bool again = r->given >> i & 1;

		if (strcmp(o->name, name))
			continue;
		if ((list || again) && !(list && o->list)) {
			snprintf(err, err_size, list ? "option '%s' takes one value: write 'option', not 'list'" : "option '%s' is given twice", name);
			return -EINVAL;
		}
		if (o->required && !value[0]) {
			snprintf(err, err_size, "option '%s' is empty (%s)", name, o->help);
			return -EINVAL;
		}
		r->given |= UINT64_C(1) << i;
		return o->kind == NUMBER ? set_number(o, r->base, value, err, err_size)
		     : o->kind == SWITCH ? set_switch(o, r->base, value, err, err_size)
					 : set_text(o, r->base, value, list && again, err, err_size);
	}
	snprintf(err, err_size, "unknown option '%.64s' in %s", name, r->label);
	return -EINVAL;
}

/* OAL_N_POLICY_MODES: there is no such mode. */
static enum oal_policy_mode control_mode(const char *name)
{
	static const char *const modes[OAL_N_POLICY_MODES] = OAL_POLICY_MODES;
	unsigned mode = 0;

	while (mode < OAL_N_POLICY_MODES && strcmp(name, modes[mode]))
		mode++;
	return (enum oal_policy_mode)mode;
}

enum oal_policy_mode config_control(const struct config *c)
{
	return c->n_rwnd ? control_mode(c->rwnd.mode) : OAL_POLICY_MODE_OFF;
}

/* Where clients' ACKs come in, unless the section says so itself: the access point's interfaces. */
static void clients_ports(struct config *c)
{
	size_t len = 0;

	if (c->n_rwnd && !c->rwnd.interface[0])
		for (uint32_t i = 0; i < c->n_nl80211; i++)
			len += (size_t)snprintf(c->rwnd.interface + len, sizeof c->rwnd.interface - len, "%s%s", i ? "," : "", c->nl80211[i].interface);
}

/* What no single option shows. */
static int judge(struct config *c, char *err, size_t err_size)
{
	struct config_kafka *k = &c->kafka;
	char *id = c->exporter.ap_id;
	const char *wrong = NULL;

	if (!c->n_exporter)
		defaults(&sections[0], (unsigned char *)&c->exporter);
	c->exporter.named = id[0];
	if (!id[0] && (gethostname(id, CONFIG_NAME) < 0 || !id[0]))
		wrong = "option 'ap_id' is empty and this host has no name";
	id[CONFIG_NAME - 1] = '\0';
	for (const char *p = id; *p && !wrong; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			wrong = "option 'ap_id' has a character other than letters, digits, '.', '_' and '-'";
#ifndef HAVE_KAFKA
	if (!wrong && c->n_kafka)
		wrong = "section 'kafka': this ap-exporter was built without Kafka; use the package with it, or a section 'file'";
#endif
	if (!wrong && c->n_kafka) {
		if (!k->plaintext && (!k->ca[0] || !k->certificate[0] || !k->key[0]))
			wrong = "section 'kafka' needs 'ca', 'certificate' and 'key' (or 'plaintext 1' for a loopback listener)";
		else if (k->plaintext && (k->ca[0] || k->certificate[0] || k->key[0]))
			wrong = "section 'kafka' has 'plaintext 1' and TLS files: leave one out";
		else if (k->inflight_kb > k->buffer_kb)
			wrong = "section 'kafka': 'inflight_kb' is larger than 'buffer_kb'";
	}
#ifndef HAVE_AGENT
	if (!wrong && c->n_agent)
		wrong = "section 'agent': this ap-exporter was built without the agent; use the package with it";
#endif
	if (!wrong && c->n_agent && (strncmp(c->agent.url, "https://", 8) || !c->agent.url[8] || strpbrk(c->agent.url, " ?#\"")))
		wrong = "section 'agent': 'url' is like https://HOST:PORT, without parameters";
	for (const char *p = c->exporter.site; c->n_agent && *p && !wrong; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			wrong = "with a section 'agent', option 'site' has letters, digits, '.', '_' and '-' only: bundles are addressed to it";
	if (!wrong && c->n_rwnd && control_mode(c->rwnd.mode) == OAL_N_POLICY_MODES)
		wrong = "section 'rwnd': 'mode' is off, shadow or enforce";
	if (!wrong && c->n_rwnd && strcmp(c->rwnd.backend, "auto") && strcmp(c->rwnd.backend, "ovs") && strcmp(c->rwnd.backend, "bpf"))
		wrong = "section 'rwnd': 'backend' is auto, ovs or bpf";
	if (!wrong && !c->n_kafka && !c->n_file)
		wrong = "no sink: add a section 'kafka' or 'file'";
	if (!wrong && !c->n_nl80211 && !c->n_qdisc && !c->n_packet && !c->n_beacon && !c->n_replay)
		wrong = "nothing to collect: add a section 'nl80211', 'qdisc', 'packet', 'beacon' or 'replay'";
	clients_ports(c);
	if (!wrong)
		return 0;
	snprintf(err, err_size, "%s", wrong);
	return -EINVAL;
}

int config_parse(struct config *c, const char *text, size_t len, char *err, size_t err_size)
{
	static const struct uci_handler handler = { open_section, set_option };
	struct reading r = { .config = c };
	int ret;

	memset(c, 0, sizeof *c);
	ret = uci_parse(text, len, &handler, &r, err, err_size);
	if (!ret) {
		ret = close_section(&r, err, err_size);
		if (ret < 0) {
			char *at = strstr(err, " before this line");

			if (at) /* the file ended instead */
				memmove(at, at + strlen(" before this line"), strlen(at + strlen(" before this line")) + 1);
		}
	}
	return ret ? ret : judge(c, err, err_size);
}

int config_load(struct config *c, const char *path, char *err, size_t err_size)
{
	char why[768], *text;
	size_t len;
	int ret = text_file_read(&text, &len, path, CONFIG_MAX_BYTES);

	if (ret) {
		snprintf(err, err_size, "cannot read configuration %s: %s", path, ret == -EFBIG ? "larger than 64 KiB" : ret == -ENOMEM ? "out of memory" : strerror(-ret));
		return ret;
	}
	ret = config_parse(c, text, len, why, sizeof why);
	if (ret < 0)
		snprintf(err, err_size, "configuration %s: %s", path, why);
	free(text);
	return ret;
}

void config_ap_path(char *out, size_t size, const char *pattern, const char *ap_id)
{
	const char *at = strstr(pattern, "%s");

	if (at)
		snprintf(out, size, "%.*s%s%s", (int)(at - pattern), pattern, ap_id, at + 2);
	else
		snprintf(out, size, "%s", pattern);
}

void config_virtual_ap(char *out, size_t size, const char *ap_id, unsigned aps, unsigned i)
{
	if (aps == 1)
		snprintf(out, size, "%s", ap_id);
	else
		snprintf(out, size, "%s-%04u", ap_id, i + 1);
}

void config_print_options(FILE *f)
{
	for (size_t i = 0; i < N_SECTIONS; i++) {
		fprintf(f, "\nconfig %s  (%s; at most %u)\n", sections[i].type, sections[i].help, sections[i].most);
		for (uint32_t k = 0; k < sections[i].n_options; k++) {
			const struct option *o = &sections[i].options[k];

			if (o->kind == NUMBER)
				fprintf(f, "  %-23s %u  [%u…%u]  %s\n", o->name, o->value, o->min, o->max, o->help);
			else if (o->kind == SWITCH)
				fprintf(f, "  %-23s %u  [0, 1]  %s\n", o->name, o->value, o->help);
			else
				fprintf(f, "  %-23s %s  %s\n", o->name, o->required ? "(needed)" : o->text[0] ? o->text : "''", o->help);
		}
	}
}
