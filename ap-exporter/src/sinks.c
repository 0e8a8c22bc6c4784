#include "sinks.h"

#include "base/log.h"

int sinks_check(const struct config *c, char *err, size_t err_size)
{
	int ret = 0;

	for (int i = 0; sink_all[i] && !ret; i++)
		if (sink_all[i]->wanted(c))
			ret = sink_all[i]->check(c, err, err_size);
	return ret;
}

int sinks_open(struct sinks *s, const struct config *c, struct sinks *earlier, const struct config *earlier_config,
               char *err, size_t err_size)
{
	for (int i = 0; sink_all[i]; i++) {
		const struct sink_ops *ops = sink_all[i];
		void *self = NULL;
		int ret = 0;

		if (!ops->wanted(c))
			continue;
		for (unsigned k = 0; earlier && k < earlier->n; k++)
			if (earlier->open[k].ops == ops && ops->same(earlier_config, c))
				self = earlier->open[k].self;
		s->open[s->n].shared = self != NULL;
		if (!self)
			ret = ops->open(&self, c, err, err_size);
		if (ret)
			return ret;
		s->open[s->n].ops = ops;
		s->open[s->n++].self = self;
	}
	return 0;
}

void sinks_own(struct sinks *s, struct sinks *earlier)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (!s->open[i].shared)
			continue;
		s->open[i].shared = false;
		for (unsigned k = 0; k < earlier->n; k++)
			if (earlier->open[k].self == s->open[i].self)
				earlier->open[k].shared = true;
	}
}

int sinks_reread(struct sinks *s, const struct config *c, bool all, char *err, size_t err_size)
{
	int ret = 0;

	for (unsigned i = 0; i < s->n && !ret; i++)
		if ((all || s->open[i].shared) && s->open[i].ops->reread)
			ret = s->open[i].ops->reread(s->open[i].self, c, err, err_size);
	return ret;
}

void sinks_send(struct sinks *s, const struct sink_batch *b)
{
	for (unsigned i = 0; i < s->n; i++)
		s->open[i].ops->send(s->open[i].self, b);
}

void sinks_second(struct sinks *s)
{
	for (unsigned i = 0; i < s->n; i++)
		s->open[i].ops->second(s->open[i].self);
}

void sinks_close(struct sinks *s)
{
	while (s->n) {
		const struct sink_ops *ops = s->open[--s->n].ops;
		struct sink_stats last;

		if (s->open[s->n].shared)
			continue;
		ops->close(s->open[s->n].self, &last);
		log_info("%s: %llu batches delivered, %llu let go, %llu errors%s%s", ops->name,
			 (unsigned long long)last.delivered, (unsigned long long)last.let_go,
			 (unsigned long long)last.errors, last.last_error[0] ? "; latest: " : "", last.last_error);
	}
}
