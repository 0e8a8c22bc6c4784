#include "collect/collect_source.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int collect_source_check(const struct collect_kind *k, const char *interface, char *err, size_t err_size)
{
	struct netlink *nl = NULL;
	int ret = netlink_open(&nl, k->protocol);

	if (!ret && k->family)
		ret = netlink_family(nl, k->family);
	netlink_close(nl);
	if (ret >= 0)
		return 0;
	if (k->family)
		snprintf(err, err_size,
			 "%s on %s: this kernel does not offer %s (%s): load cfg80211, or remove the section", k->name,
			 interface, k->family, strerror(-ret));
	else
		snprintf(err, err_size, "%s on %s: cannot open rtnetlink: %s", k->name, interface, strerror(-ret));
	return ret;
}

int collect_source_start(void **self, size_t size, const struct collect_kind *k, const char *interface,
			 const struct collector_env *env, char *err, size_t err_size)
{
	struct collect_source *s = calloc(1, size);
	int ret = s ? netlink_open(&s->nl, k->protocol) : -ENOMEM;

	if (!ret) {
		s->kind = k;
		s->samples = env->samples;
		interface_init(&s->interface, interface);
		ret = k->prepare(s);
	}
	if (ret) {
		snprintf(err, err_size, "%s on %s: cannot start: %s", k->name, interface, strerror(-ret));
		collect_source_stop(s);
		return ret;
	}
	interface_report(&s->interface, k->name);
	*self = s;
	return 0;
}

void collect_source_second(struct collect_source *s)
{
	if (interface_update(&s->interface)) {
		if (s->kind->forget)
			s->kind->forget(s); /* another index is another interface, with counters of its own */
		if (s->interface.index && s->kind->prepare(s) < 0)
			s->interface.index = 0; /* nl80211 is not back yet */
	}
	interface_report(&s->interface, s->kind->name);
}

bool collect_source_settle(struct collect_source *s, int ret, const struct netlink_result *r)
{
	struct collector_counts counts = { .dumps_interrupted = r->interrupted, .netlink_errors = ret != 0 };
	const bool lost = ret && interface_failed(&s->interface, ret);

	counts.interface_losses = lost;
	if (ret || r->interrupted)
		samples_count(s->samples, &counts);
	if (lost && s->kind->forget)
		s->kind->forget(s);
	return !ret;
}

void collect_source_stop(struct collect_source *s)
{
	if (!s)
		return;
	netlink_close(s->nl);
	free(s);
}
