/* rwnd_bpf_ports.h: the Wi-Fi ports of the bpf backend, and the tc programs on each. Ports go and come, others change
 * their filters: a message from rtnetlink says when to check. */
#ifndef OAL_RWND_BPF_PORTS_H
#define OAL_RWND_BPF_PORTS_H

#include "base/config.h"
#include "packet/interface.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RWND_BPF_MAX_PORTS = 8, /* an AP has rarely more Wi-Fi ports that carry clients */
	RWND_BPF_ERROR = 512, /* bytes */
};

struct rwnd_bpf_port {
	struct interface interface;
	unsigned index; /* where the programs are; 0: nowhere */
	bool egress; /* the program for SYN-ACKs too: not where an `ingress` qdisc was there before us */
};

struct rwnd_bpf_ports {
	struct rwnd_bpf_port ports[RWND_BPF_MAX_PORTS];
	unsigned n, n_attached;
	int up_fd, down_fd; /* programs: at ingress, from clients; at egress, to them */
	uint32_t up_id, down_id;
	int changes; /* rtnetlink: of interfaces and filters */
	bool check; /* a change was announced */
	uint64_t check_at_us, attach_errors;
	char last_error[RWND_BPF_ERROR]; /* why the last attach failed */
};

/* Reads the names in the configuration: at most RWND_BPF_MAX_PORTS, separated by commas. 0, or -EINVAL with what to do
 * in `err`. Opens nothing. */
int rwnd_bpf_ports_name(struct rwnd_bpf_ports *, const struct config_rwnd *, char *err, size_t err_size);
/* Attaches the programs to each port that is there, instead of what an earlier exporter left. 0; or negative errno,
 * with `last_error` set if it was a port that failed. */
int rwnd_bpf_ports_open(struct rwnd_bpf_ports *, int up_fd, int down_fd);
/* Once a tick: after a change, at most once a second, attaches where the programs are not. */
void rwnd_bpf_ports_poll(struct rwnd_bpf_ports *, uint64_t now_us);
/* Detaches. Also after a failed open. */
void rwnd_bpf_ports_close(struct rwnd_bpf_ports *);

#endif
