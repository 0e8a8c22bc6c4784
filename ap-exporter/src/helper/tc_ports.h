/* tc_ports.h: Wi-Fi ports, and a pair of tc programs on each. Ports go and come, others change their filters: a message
 * from rtnetlink says when to check. */
#ifndef OAL_TC_PORTS_H
#define OAL_TC_PORTS_H

#include "helper/record.h"
#include "packet/interface.h"
#include "tc/tc_place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TC_ERROR = 512 }; /* bytes */

/* Places among a port's filters, early: one that ends with "ok" keeps the later ones from running. The tap stands
 * behind the others: its rows say what leaves for the server, as rows of a wired port do, and what leaves for stations
 * with its marks. */
enum { TC_PRIORITY_MARK = 10, TC_PRIORITY_RWND = 11, TC_PRIORITY_TAP = 12 };

struct tc_port {
	struct interface interface;
	unsigned index; /* where the programs are; 0: nowhere */
	bool egress; /* the program at egress too: not where an `ingress` qdisc was there before us */
};

struct tc_ports {
	const char *section; /* of the configuration, for messages */
	struct tc_place place; /* priority, names and programs: what the helper gets */
	struct tc_port ports[TC_MAX_PORTS];
	unsigned n, n_attached;
	int slot; /* of the helper; -1: none */
	int changes; /* rtnetlink: of interfaces and filters */
	bool check; /* a change was announced */
	uint64_t check_at_us, attach_errors;
	char last_error[TC_ERROR]; /* why the last attach failed */
};

/* Reads the names in `names`, at most TC_MAX_PORTS, separated by commas; `section` of the configuration has them. 0, or
 * -EINVAL with what to do in `err`. Opens nothing. */
int tc_ports_name(struct tc_ports *, const char *section, const char *names, uint32_t priority, char *err,
		  size_t err_size);
/* Can programs be put on the ports in `names`? As tc_ports_name(); -EPERM once the helper has started; or what the
 * kernel says to a BPF map. Changes nothing. */
int tc_ports_check(const char *section, const char *names, uint32_t priority, char *err, size_t err_size);
/* Which programs: sets their descriptors and ids in `place`, of which a slot is then made. */
void tc_ports_programs(struct tc_ports *, int up_fd, int down_fd);
/* Has the programs of a helper's slot, which was made of `place`, attached to each port that is there, instead of what
 * an earlier exporter left. 0; or negative errno, with `last_error` set if it was a port that failed. */
int tc_ports_open(struct tc_ports *, int slot);
/* What the helper says of that slot. */
void tc_ports_answer(struct tc_ports *, const struct helper_answer *);
/* Once a tick: after a change, at most once a second, attaches where the programs are not. */
void tc_ports_poll(struct tc_ports *, uint64_t now_us);
/* Detaches. Also after a failed open. */
void tc_ports_close(struct tc_ports *);

#endif
