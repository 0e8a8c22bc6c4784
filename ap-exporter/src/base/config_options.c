#include "base/config_options.h"

#include "base/config.h"

#include <string.h>

#define T(s, f, def, req, lst, hlp) \
	{ #f, CONFIG_TEXT, offsetof(struct config_##s, f), sizeof ((struct config_##s *)0)->f, def, 0, 0, 0, req, \
	  lst, hlp }
#define N(s, f, def, lo, hi, hlp) \
	{ #f, CONFIG_NUMBER, offsetof(struct config_##s, f), 4, "", def, lo, hi, false, false, hlp }
#define S(s, f, def, hlp) { #f, CONFIG_SWITCH, offsetof(struct config_##s, f), 1, "", def, 0, 1, false, false, hlp }
#define ENABLED(s) S(s, enabled, 1, "0 leaves this section out")

static const struct config_option exporter_options[] = {
	ENABLED(exporter),
	T(exporter, ap_id, "", false, false,
	  "name of this " OAL_HERE ": the Kafka key, and the CN of its certificate; empty: the host's name"),
	T(exporter, site, "", false, false, "site the " OAL_HERE " belongs to"),
	T(exporter, user, "", false, false, "user to become once everything is open; empty: stay"),
	T(exporter, status_socket, OAL_STATUS_SOCKET, false, false,
	  "unix socket that answers with health as JSON; empty: none"),
	T(exporter, pseudonym_key, "", false, false,
	  "file with a key of 16 bytes: addresses leave the " OAL_HERE " as keyed hashes; empty: as they are"),
	N(exporter, max_stations, 64, 1, 512, "stations followed at once"),
	N(exporter, max_flows, 512, 16, 4096, "TCP flows followed at once"),
	N(exporter, sampling_cpu_percent, 5, 1, 100,
	  "most of one core that asking the kernel may take, kernel included; beyond it things are sampled less often"),
};
static const struct config_option qdisc_options[] = {
	ENABLED(qdisc),
	T(qdisc, interface, "", true, false, "interface whose queueing disciplines are sampled"),
	N(qdisc, interval_ticks, 1, 1, 2500, "ticks between samples"),
};
#ifndef OAL_HOST
static const struct config_option nl80211_options[] = {
	ENABLED(nl80211),
	T(nl80211, interface, "", true, false, "AP interface"),
#ifdef HAVE_KMOD
	T(nl80211, stations, "auto", false, false,
	  "nl80211, or auto: the kernel module where it is loaded"),
#endif
	N(nl80211, idle_interval_ticks, 25, 1, 250,
	  "ticks between samples of stations without traffic, and between searches for new ones"),
	N(nl80211, active_hold_ticks, 250, 1, 25000, "ticks without traffic after which a station counts as idle"),
	N(nl80211, channel_interval_ticks, 25, 1, 2500,
	  "ticks between reads of the channel survey; at least 25: some drivers ask their firmware for it"),
	N(nl80211, queue_interval_ticks, 5, 1, 2500, "ticks between reads of the interface's own transmit queue"),
};
static const struct config_option packet_options[] = {
	ENABLED(packet),
	T(packet, interface, "", true, false, "wired port on which TCP headers are read, both directions"),
	N(packet, ring_kb, 512, 64, 65536, "kernel ring, KiB: 8 KiB hold 46 packets or 4 ms, whichever comes first"),
	N(packet, snaplen, 96, 80, 256,
	  "bytes kept of each frame; 96 holds IPv4 or IPv6 and TCP with options, not payload"),
};
static const struct config_option tap_options[] = {
	ENABLED(tap),
	T(tap, interface, "", true, false, "Wi-Fi port on which TCP headers are read, both directions"),
	T(tap, tap, "auto", false, false,
	  "bpf (tc programs), packet (a packet socket) or auto: bpf where the kernel takes it"),
	N(tap, ring_kb, 256, 64, 65536, "ring, KiB, of 5 packets each; bpf takes the next power of two"),
};
static const struct config_option beacon_options[] = {
	ENABLED(beacon),
	T(beacon, interface, "", true, false, "interface whose scan results are read"),
	N(beacon, interval_ticks, 25, 1, 2500, "ticks between reads"),
};
static const struct config_option neigh_options[] = {
	ENABLED(neigh),
	T(neigh, interface, "", true, false,
	  "Wi-Fi side interface of a routed AP: its neighbour table gives a flow its station"),
	N(neigh, interval_ms, 1000, 100, 60000, "ms between reads"),
};
#else
static const struct config_option tcp_options[] = {
	ENABLED(tcp),
	N(tcp, interval_ms, 100, 20, 60000,
	  "ms between two looks at a connection; more where there are many, see cpu_permille"),
	N(tcp, cpu_permille, 5, 1, 1000,
	  "most of one core, in thousandths, that looks may take with all that follows from them; beyond it they are "
	  "rarer"),
	T(tcp, port, "", false, true, "ports of this host whose connections count; empty: all"),
	T(tcp, peer, "", false, true, "networks of the far ends that count, like 192.168.0.0/16; empty: all"),
	S(tcp, loopback, 0, "1: connections of this host with itself count, too"),
	S(tcp, looks, 1, "0: no rows while a connection lives, only their sums at its end"),
	S(tcp, sessions, 1, "0: no rows at a connection's end"),
	N(tcp, max_connections, 16384, 16, 32768, "connections followed at once"),
};
#ifdef HAVE_CONGESTION
static const struct config_option congestion_options[] = {
	ENABLED(congestion),
	T(congestion, mode, "shadow", false, false,
	  "off, shadow or enforce: the most that a policy may do on this host; shadow decides and reports, and sets "
	  "nothing; enforce needs CAP_BPF and CAP_NET_ADMIN"),
	T(congestion, cgroup, "", false, false,
	  "folder of cgroup2 whose processes' connections are meant; empty: those of all processes"),
	T(congestion, kill_file, "/run/oal-host/kill", false, false,
	  "while this file exists nothing is chosen; empty: none"),
};
#endif
#endif
static const struct config_option replay_options[] = {
	ENABLED(replay),
	T(replay, file, "", true, false, "capture of the file sink, or a pcap or pcapng file of TCP traffic"),
	S(replay, loop, 1, "1: starts over at its end; 0: the exporter ends with it"),
	N(replay, aps, 1, 1, 64, "virtual APs; more than one are named PREFIX-0001, PREFIX-0002, …"),
	T(replay, ap_prefix, "", false, false, "their PREFIX; empty: the exporter's ap_id"),
	N(replay, speed_percent, 100, 1, 10000, "percent of the recorded pace"),
	T(replay, client_net, "", false, false,
	  "pcap: network of the Wi-Fi side, like 192.168.1.0/24; empty: the side that opened the connection"),
};
static const struct config_option kafka_options[] = {
	ENABLED(kafka),
	T(kafka, brokers, "", true, true, "HOST:PORT, several as a list or separated by commas"),
	T(kafka, ca, "", false, false, "PEM file of the authority that signed the brokers"),
	T(kafka, certificate, "", false, false, "PEM file of this " OAL_HERE "'s certificate"),
	T(kafka, key, "", false, false, "PEM file of its private key"),
	T(kafka, mac_keys, "", false, false,
	  "file of MAC keys, lines AP_ID SITE KEY_ID BASE64: batches are signed with this " OAL_HERE "'s; empty: they "
	  "are not"),
	S(kafka, plaintext, 0, "1: no TLS; for a loopback listener only"),
	T(kafka, topic_prefix, "", false, false, "put before ap.samples.v1, ap.packets.v1 and ap.events.v1"),
	N(kafka, buffer_kb, 2048, 64, 1048576, "newest batches kept while Kafka is away, KiB before compression"),
	N(kafka, inflight_kb, 256, 32, 65536, "handed to the producer and not yet acknowledged, KiB"),
	N(kafka, linger_ms, 20, 0, 1000, "ms to wait for more batches of a topic before sending"),
	N(kafka, flush_ms, 5000, 0, 60000, "ms to wait at the end for what is on its way"),
};
static const struct config_option file_options[] = {
	ENABLED(file),
	T(file, path, "", true, false, "capture to write; an existing one is replaced"),
	N(file, max_mb, 0, 0, 1048576, "MiB after which nothing more is written; 0: no limit"),
};

static const struct config_option agent_options[] = {
	ENABLED(agent),
	T(agent, url, "", true, false, "push service, like https://push.example.net:8443"),
	T(agent, ca, "", true, false, "PEM file of the authority that signed the push service"),
	T(agent, cert, "", true, false,
	  "PEM file of this " OAL_HERE "'s certificate; %s in it stands for the " OAL_HERE "'s id"),
	T(agent, key, "", true, false, "PEM file of its private key; %s likewise"),
	T(agent, trusted_keys, "", true, false,
	  "file of public keys, one a line (ed25519 BASE64 NAME role=R scope=S max_mode=M): only bundles that one "
	  "of them signed, and may sign, are used"),
	T(agent, state_dir, "", false, false,
	  "folder on flash for the last good bundle; empty: it is not kept over a restart"),
	N(agent, wait_s, 60, 1, 300, "s that a request for news waits at the service"),
	N(agent, store_interval_s, 60, 0, 86400, "s between writes of a changed bundle to flash, at least"),
	N(agent, retry_max_s, 60, 1, 3600,
	  "s between attempts while the service fails, at most; it begins with half a second"),
	N(agent, neighbours_s, 5, 0, 3600,
	  "s between questions about the other APs on a radio's channel; 0: it does not ask"),
};
#ifndef OAL_HOST
static const struct config_option rwnd_options[] = {
	ENABLED(rwnd),
	T(rwnd, mode, "shadow", false, false,
	  "off, shadow or enforce: the most that a policy may do on this AP; shadow decides and reports, and writes "
	  "nothing"),
	T(rwnd, backend, "auto", false, false,
	  "auto, ovs (the bridge's rewrite_rwnd action) or bpf (a tc program); auto takes bpf where it works"),
	T(rwnd, interface, "", false, true,
	  "bpf: Wi-Fi ports where the clients' ACKs come in; empty: those of the nl80211 sections"),
	T(rwnd, bridge, "br-lan", false, false, "ovs: name of the bridge"),
	T(rwnd, ovs_rundir, "/var/run/openvswitch", false, false, "ovs: folder of the bridge's management socket"),
	T(rwnd, kill_file, "/var/run/ap-exporter.kill", false, false,
	  "while this file exists nothing is clamped; empty: none"),
	N(rwnd, max_flows, 256, 1, 4096, "flows clamped at once, at most"),
};
static const struct config_option mark_options[] = {
	ENABLED(mark),
	T(mark, mode, "shadow", false, false,
	  "off, shadow or enforce: the most that a policy may do on this AP; shadow decides and reports, and marks "
	  "nothing"),
	T(mark, backend, "auto", false, false,
	  "auto, bpf (a tc program) or ovs (the bridge's mark_ce action: name it where its data path knows that); auto "
	  "takes bpf"),
	T(mark, interface, "", false, true,
	  "bpf: Wi-Fi ports where packets leave for stations; empty: those of the nl80211 sections"),
	T(mark, bridge, "br-lan", false, false, "ovs: name of the bridge"),
	T(mark, ovs_rundir, "/var/run/openvswitch", false, false, "ovs: folder of the bridge's management socket"),
	T(mark, kill_file, "/var/run/ap-exporter.kill", false, false,
	  "while this file exists nothing is marked; empty: none"),
	N(mark, max_stations, 64, 1, 512, "stations marked at once, at most"),
};
#endif

#define SECTION(t, n, hlp) \
	{ #t, \
	  offsetof(struct config, t), \
	  sizeof(struct config_##t), \
	  offsetof(struct config, n_##t), \
	  sizeof((struct config *)0)->t / sizeof(struct config_##t), \
	  t##_options, \
	  sizeof t##_options / sizeof t##_options[0], \
	  hlp }

const struct config_section config_sections[] = {
	SECTION(exporter, n_exporter, "the " OAL_HERE " and the daemon"),
#ifdef OAL_HOST
	SECTION(tcp, n_tcp, "collector: TCP connections of this host"),
#else
	SECTION(nl80211, n_nl80211, "collector: stations, channel and interface queue of a Wi-Fi interface"),
#endif
	SECTION(qdisc, n_qdisc, "collector: queueing disciplines of an interface"),
#ifndef OAL_HOST
	SECTION(packet, n_packet, "collector: TCP headers on a wired port"),
	SECTION(tap, n_tap, "collector: TCP headers on a Wi-Fi port, before NAT"),
	SECTION(beacon, n_beacon, "collector: neighbour BSSs in an interface's scan results"),
	SECTION(neigh, n_neigh, "collector: addresses of stations, on a routed AP"),
#endif
	SECTION(replay, n_replay, "collector: plays a file as one or several APs"),
	SECTION(kafka, n_kafka, "sink: Kafka"),
	SECTION(file, n_file, "sink: a capture file"),
	SECTION(agent, n_agent, "pulls models from the push service, and predicts with them"),
#ifndef OAL_HOST
	SECTION(rwnd, n_rwnd, "control: lowers receive windows of flows before a queue overflows"),
	SECTION(mark, n_mark, "control: sets CE in packets to stations that wait, where they have ECT"),
#elif defined HAVE_CONGESTION
	SECTION(congestion, n_congestion, "control: chooses the congestion control of connections that begin"),
#endif
};
const size_t config_n_sections = sizeof config_sections / sizeof config_sections[0];

/* --- control: how far it goes, and by what */

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

enum oal_policy_mode config_marks(const struct config *c)
{
	return c->n_mark ? control_mode(c->mark.mode) : OAL_POLICY_MODE_OFF;
}

enum oal_policy_mode config_congestion(const struct config *c)
{
	return c->n_congestion ? control_mode(c->congestion.mode) : OAL_POLICY_MODE_OFF;
}

static bool is_backend(const char *name)
{
	return !strcmp(name, "auto") || !strcmp(name, "ovs") || !strcmp(name, "bpf");
}

const char *config_wrong_control(const struct config *c)
{
	if (c->n_rwnd && control_mode(c->rwnd.mode) == OAL_N_POLICY_MODES)
		return "section 'rwnd': 'mode' is off, shadow or enforce";
	if (c->n_rwnd && !is_backend(c->rwnd.backend))
		return "section 'rwnd': 'backend' is auto, ovs or bpf";
	if (c->n_mark && control_mode(c->mark.mode) == OAL_N_POLICY_MODES)
		return "section 'mark': 'mode' is off, shadow or enforce";
	if (c->n_mark && !is_backend(c->mark.backend))
		return "section 'mark': 'backend' is auto, ovs or bpf";
	if (config_congestion(c) == OAL_N_POLICY_MODES)
		return "section 'congestion': 'mode' is off, shadow or enforce";
	return NULL;
}
