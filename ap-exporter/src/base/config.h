/*
 * The daemon's configuration, read from a file in UCI format. Every option, its default, unit and range stand in one
 * table in config.c; README.md and files/ap-exporter.config describe the same options and a test compares them.
 */
#ifndef OAL_CONFIG_H
#define OAL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/version.h"
#include "oal_policy.h"

#define CONFIG_PATH OAL_CONFIG_PATH
#define CONFIG_NAME 64   /* ids and names */
#define CONFIG_FILE 256  /* paths, broker lists */
#define CONFIG_IF 16     /* interface names (IFNAMSIZ) */
#define CONFIG_EACH 8    /* most sections of one type */

struct config_exporter {
	bool enabled;
	char ap_id[CONFIG_NAME];
	bool named; /* ap_id was given; else it is the host's name */
	char site[CONFIG_NAME];
	char user[CONFIG_NAME];  /* empty: stay who started it */
	char status_socket[CONFIG_FILE];
	char pseudonym_key[CONFIG_FILE];
	uint32_t max_stations, max_flows, sampling_cpu_percent;
};

struct config_nl80211 {
	bool enabled;
	char interface[CONFIG_IF];
	uint32_t idle_interval_ticks, active_hold_ticks, channel_interval_ticks, queue_interval_ticks;
	char stations[12]; /* auto, nl80211 */
};

struct config_qdisc {
	bool enabled;
	char interface[CONFIG_IF];
	uint32_t interval_ticks;
};

struct config_packet {
	bool enabled;
	char interface[CONFIG_IF];
	uint32_t ring_kb, snaplen;
};

/* TCP headers of a Wi-Fi port, where the stations' own addresses are. */
struct config_tap {
	bool enabled;
	char interface[CONFIG_IF];
	char tap[8]; /* auto, bpf, packet */
	uint32_t ring_kb;
};

struct config_beacon {
	bool enabled;
	char interface[CONFIG_IF];
	uint32_t interval_ticks;
};

struct config_neigh {
	bool enabled;
	char interface[CONFIG_IF];
	uint32_t interval_ms;
};

/* TCP connections of this host, as their sender. */
struct config_tcp {
	bool enabled;
	char port[CONFIG_NAME], peer[CONFIG_FILE]; /* lists; empty: any */
	bool loopback, looks, sessions;
	uint32_t interval_ms, cpu_permille, max_connections;
};

struct config_replay {
	bool enabled;
	char file[CONFIG_FILE];
	bool loop;
	uint32_t aps;          /* virtual APs */
	char ap_prefix[CONFIG_NAME]; /* empty: the exporter's ap_id */
	uint32_t speed_percent;
	char client_net[CONFIG_NAME]; /* pcap: which addresses are on the Wi-Fi side */
};

struct config_kafka {
	bool enabled;
	char brokers[CONFIG_FILE], ca[CONFIG_FILE], certificate[CONFIG_FILE], key[CONFIG_FILE], mac_keys[CONFIG_FILE];
	bool plaintext;
	char topic_prefix[CONFIG_NAME];
	uint32_t buffer_kb, inflight_kb, linger_ms, flush_ms;
};

/* Pulls bundles; `cert` and `key` may hold %s for the AP's id. */
struct config_agent {
	bool enabled;
	char url[CONFIG_FILE], ca[CONFIG_FILE], cert[CONFIG_FILE], key[CONFIG_FILE], trusted_keys[CONFIG_FILE],
		state_dir[CONFIG_FILE];
	uint32_t wait_s, store_interval_s, retry_max_s, neighbours_s;
};

/* What the AP may do with receive windows, and how. */
struct config_rwnd {
	bool enabled;
	char mode[16]; /* off, shadow, enforce: the most that any policy may do here */
	char backend[16]; /* auto, ovs, bpf */
	char interface[CONFIG_FILE]; /* bpf: where clients' ACKs come in; several are joined by a comma */
	char bridge[CONFIG_IF]; /* ovs */
	char ovs_rundir[CONFIG_FILE];
	char kill_file[CONFIG_FILE]; /* while it exists nothing is clamped */
	uint32_t max_flows;
};

/* What the AP may do with marks of packets to its stations, and how. */
struct config_mark {
	bool enabled;
	char mode[16]; /* off, shadow, enforce: the most that any policy may do here */
	char backend[16]; /* auto, ovs, bpf */
	char interface[CONFIG_FILE]; /* bpf: where packets leave for stations; several are joined by a comma */
	char bridge[CONFIG_IF]; /* ovs */
	char ovs_rundir[CONFIG_FILE];
	char kill_file[CONFIG_FILE]; /* while it exists nothing is done */
	uint32_t max_stations;
};

/* What a host may do with the congestion control of connections that begin. */
struct config_congestion {
	bool enabled;
	char mode[16]; /* off, shadow, enforce: the most that any policy may do here */
	char cgroup[CONFIG_FILE]; /* whose connections; empty: those of all processes */
	char kill_file[CONFIG_FILE]; /* while it exists nothing is chosen */
};

struct config_file {
	bool enabled;
	char path[CONFIG_FILE];
	uint32_t max_mb;
};

struct config {
	struct config_exporter exporter;
	struct config_nl80211 nl80211[CONFIG_EACH];
	struct config_qdisc qdisc[CONFIG_EACH];
	struct config_packet packet[CONFIG_EACH];
	struct config_tap tap[CONFIG_EACH];
	struct config_beacon beacon[CONFIG_EACH];
	struct config_neigh neigh[CONFIG_EACH];
	struct config_tcp tcp;
	struct config_replay replay[CONFIG_EACH];
	struct config_kafka kafka;
	struct config_file file;
	struct config_agent agent;
	struct config_rwnd rwnd;
	struct config_mark mark;
	struct config_congestion congestion;
	uint32_t n_exporter, n_nl80211, n_qdisc, n_packet, n_tap, n_beacon, n_neigh, n_tcp, n_replay, n_kafka,
		n_file, n_agent, n_rwnd, n_mark, n_congestion;
};

/*
 * Reads and judges a configuration. 0, or a negative errno with what is wrong, and where, in `err`.
 * Sections with `enabled 0` are left out of the result.
 */
int config_load(struct config *c, const char *path, char *err, size_t err_size);
int config_parse(struct config *c, const char *text, size_t len, char *err, size_t err_size);

/* The most that a policy may do on this AP: with windows, off without a section `rwnd`; with marks, off without a
 * section `mark`; with congestion controls, off without a section `congestion`. */
enum oal_policy_mode config_control(const struct config *c);
enum oal_policy_mode config_marks(const struct config *c);
enum oal_policy_mode config_congestion(const struct config *c);

/* Does a tap want tc programs, if the kernel takes them? Then loading them again takes privileges. */
#ifdef HAVE_BPF
bool config_wants_bpf_tap(const struct config *c);
#else
static inline bool config_wants_bpf_tap(const struct config *c) { return false; }
#endif

/* A path of a section `agent`: the first %s of `pattern` is the AP's id. */
void config_ap_path(char *out, size_t size, const char *pattern, const char *ap_id);

/* What AP `i` of the `aps` virtual ones of a replay is called. */
void config_virtual_ap(char *out, size_t size, const char *ap_id, unsigned aps, unsigned i);

/* Prints every section type and option with its default, range and meaning. */
void config_print_options(FILE *f);

#endif
