#include "collectors.h"

#include <stdio.h>
#include <string.h>

int collectors_check(const struct config *c, char *err, size_t err_size)
{
	int ret = 0;

	for (int i = 0; collector_all[i] && !ret; i++)
		for (uint32_t k = 0; k < collector_all[i]->sections(c) && !ret; k++)
			ret = collector_all[i]->check(c, k, err, err_size);
	return ret;
}

bool collectors_live(const struct config *c)
{
	bool live = false;

	for (int i = 0; collector_all[i]; i++)
		live |= collector_all[i]->live && collector_all[i]->sections(c);
	return live;
}

int collectors_start(struct collectors *c, const struct collector_env *template, char *err, size_t err_size)
{
	struct collector_env env = *template;
	size_t len = 1;

	strcpy(c->names, "[");
	for (int i = 0; collector_all[i]; i++) {
		const struct collector_ops *ops = collector_all[i];

		for (env.section = 0; env.section < ops->sections(env.config); env.section++) {
			int ret = ops->check(env.config, env.section, err, err_size);

			ret = ret ? ret : ops->start(&c->running[c->n].self, &env, err, err_size);
			if (ret)
				return ret;
			c->running[c->n++].ops = ops;
			len += (size_t)snprintf(c->names + len, sizeof c->names - len - 2, "%s\"%s\"",
						len > 1 ? ", " : "", ops->name);
			if (len > sizeof c->names - 16)
				len = sizeof c->names - 16; /* enough of them to see what kind they are */
		}
	}
	strcpy(c->names + len, "]");
	return 0;
}

void collectors_before_tick(struct collectors *c, const struct collector_tick *t)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->before_tick)
			c->running[i].ops->before_tick(c->running[i].self, t);
}

void collectors_tick(struct collectors *c, const struct collector_tick *t)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->tick)
			c->running[i].ops->tick(c->running[i].self, t);
}

void collectors_second(struct collectors *c)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->second)
			c->running[i].ops->second(c->running[i].self);
}

bool collectors_done(const struct collectors *c)
{
	for (unsigned i = 0; i < c->n; i++)
		if (!c->running[i].ops->done || !c->running[i].ops->done(c->running[i].self))
			return false;
	return c->n > 0;
}

void collectors_add_stats(const struct collectors *c, struct pipeline_stats *sum)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->running[i].ops->add_stats)
			c->running[i].ops->add_stats(c->running[i].self, sum);
}

void collectors_stop(struct collectors *c)
{
	while (c->n) {
		c->n--;
		c->running[c->n].ops->stop(c->running[c->n].self);
	}
}
