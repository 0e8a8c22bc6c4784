#ifdef HAVE_BPF
#include "helper/tc_action.h"

#include "base/json.h"
#include "tc/tc_error.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tc_action_check(const struct tc_action_kind *kind, const char *ports, char *err, size_t err_size)
{
	return tc_ports_check(kind->name, ports, kind->priority, err, err_size);
}

/* What the helper says. Sets and releases that failed: of one that it did itself the caller hears at once. */
static void on_answer(void *self, const struct helper_answer *a)
{
	struct tc_action *t = self;

	if (a->command == HELPER_STARTED) {
		bpf_object__close(t->object);
		t->object = NULL;
	} else if (a->command == HELPER_READ && !a->error) {
		memcpy(t->counts, a->values, sizeof t->counts);
	} else if (a->command == HELPER_SET || a->command == HELPER_RELEASE || a->command == HELPER_CLEAR) {
		t->set_error = a->error;
		t->late_errors += helper_started();
	}
	tc_ports_answer(&t->ports, a);
}

/* Hands the programs over, and has them put on the ports that are there. */
static int attach(struct tc_action *t, const char **step)
{
	struct helper_slot slot = {
		.maps = { t->programs.table, t->programs.counters },
		.fields = { [HELPER_SET] = t->kind->set_fields, [HELPER_RELEASE] = t->kind->release_fields,
			    [HELPER_CLEAR] = HELPER_BARE, [HELPER_READ] = HELPER_BARE },
		.command = t->kind->command,
		.self = &t->programs,
	};
	int ret;

	*step = "hand the programs over";
	tc_ports_programs(&t->ports, t->up, t->down);
	slot.place = t->ports.place;
	ret = helper_slot_new(&slot, on_answer, t);
	if (ret < 0)
		return ret;
	*step = "listen to rtnetlink";
	return tc_ports_open(&t->ports, ret);
}

static int program_of(const struct tc_action *t, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(t->object, name));
}

static int load(struct tc_action *t, const struct tc_action_size *sizes, unsigned n_sizes, const char **step)
{
	const struct tc_action_kind *k = t->kind;
	char name[BPF_OBJ_NAME_LEN];
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = name);
	int ret;

	snprintf(name, sizeof name, "oal_%s", k->name);
	*step = "find memory for it";
	t->programs.cpus = libbpf_num_possible_cpus();
	if (t->programs.cpus <= 0 || !(t->programs.counts = calloc((size_t)t->programs.cpus, k->counts_size)))
		return -ENOMEM;
	*step = "read the BPF object";
	t->object = bpf_object__open_mem(k->object, (size_t)(k->object_end - k->object), &opts);
	if (!t->object)
		return -errno;
	for (unsigned i = 0; i < n_sizes; i++)
		bpf_map__set_max_entries(bpf_object__find_map_by_name(t->object, sizes[i].map), sizes[i].entries);
	*step = "load the BPF programs";
	ret = bpf_object__load(t->object);
	if (ret < 0)
		return ret;
	t->up = program_of(t, k->up);
	t->down = program_of(t, k->down);
	t->programs.table = tc_action_map(t, k->table);
	t->programs.counters = tc_action_map(t, "counters");
	return attach(t, step);
}

int tc_action_open(struct tc_action **out, const struct tc_action_kind *kind, const char *ports,
		   const struct tc_action_size *sizes, unsigned n_sizes, char *err, size_t err_size)
{
	struct tc_action *t = calloc(1, sizeof *t);
	const char *step;
	int ret;

	*out = NULL;
	if (!t) {
		snprintf(err, err_size, "%s with bpf: out of memory", kind->name);
		return -ENOMEM;
	}
	t->kind = kind;
	t->ports.slot = t->ports.changes = -1;
	ret = tc_ports_name(&t->ports, kind->name, ports, kind->priority, err, err_size);
	if (ret < 0)
		goto fail;
	tc_error_begin();
	ret = load(t, sizes, n_sizes, &step);
	if (ret >= 0) {
		*out = t;
		return 0;
	}
	if (t->ports.attach_errors)
		snprintf(err, err_size, "%s with bpf: %s", kind->name, t->ports.last_error);
	else
		snprintf(err, err_size,
			 "%s with bpf: cannot %s: %s; it takes root and a kernel of 5.11 or later with "
			 "CONFIG_NET_CLS_BPF (kmod-sched-bpf)",
			 kind->name, step, tc_error_text()[0] ? tc_error_text() : strerror(-ret));
fail:
	tc_action_close(t);
	return ret;
}

int tc_action_send(struct tc_action *t, enum helper_command command, struct helper_record *r)
{
	int ret;

	t->set_error = 0;
	ret = helper_send(t->ports.slot, command, r);
	ret = ret ? ret : t->set_error;
	return ret == -E2BIG ? -ENOSPC : ret;
}

void tc_action_clear(struct tc_action *t)
{
	struct helper_record r = { 0 };

	tc_action_send(t, HELPER_CLEAR, &r);
}

void tc_action_read(struct tc_action *t)
{
	struct helper_record r = { 0 };

	helper_send(t->ports.slot, HELPER_READ, &r);
}

bool tc_action_at_egress(const struct tc_action *t)
{
	for (unsigned i = 0; i < t->ports.n; i++)
		if (t->ports.ports[i].index && t->ports.ports[i].egress)
			return true;
	return false;
}

void tc_action_json(const struct tc_action *t, const char *egress, struct json *j)
{
	json_add(j, ", \"ports\": [");
	for (unsigned i = 0; i < t->ports.n; i++) {
		const struct tc_port *p = &t->ports.ports[i];
		const bool at_egress = p->index && p->egress;

		json_add(j, "%s{\"interface\": ", i ? ", " : "");
		json_string(j, p->interface.name);
		json_add(j, ", \"attached\": %s", (egress ? p->index != 0 : at_egress) ? "true" : "false");
		if (egress)
			json_add(j, ", \"%s\": %s", egress, at_egress ? "true" : "false");
		json_count(j, "losses", p->interface.losses);
		json_add(j, "}");
	}
	json_add(j, "], \"last_error\": ");
	json_string(j, t->ports.last_error);
}

int tc_action_map(const struct tc_action *t, const char *name)
{
	return bpf_object__find_map_fd_by_name(t->object, name);
}

void tc_action_close(struct tc_action *t)
{
	if (!t)
		return;
	tc_ports_close(&t->ports);
	bpf_object__close(t->object);
	free(t->programs.counts);
	free(t);
}
#endif
