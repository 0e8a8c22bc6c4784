#include "start.h"

#include "collect/collector.h"
#include "data_path.h"
#include "helper/confine.h"
#include "helper/helper.h"

#ifdef HAVE_BPF
static void on_helper(void *loop, int fd)
{
	helper_read(NULL, fd);
	if (helper_lost())
		loop_remove(loop, fd);
}

static int start_helper(struct loop *loop, const struct rights *rights, char *err, size_t err_size)
{
	const int ret = helper_start(rights, err, err_size);

	return ret || helper_fd() < 0 ? ret : loop_add(loop, helper_fd(), on_helper, loop);
}

void start_end(void)
{
	helper_stop();
}
#else
static int start_helper(struct loop *loop, const struct rights *rights, char *err, size_t err_size)
{
	return 0;
}

void start_end(void)
{
}
#endif

int start_with_rights(struct rights *rights, const struct config *c, struct loop *loop, char *err, size_t err_size)
{
	int ret = rights_read(rights, c->exporter.user, err, err_size);

	if (!ret)
		ret = collect_taps_hold(c, err, err_size);
	if (ret)
		return ret;
	data_path_hold(c);
	ret = start_helper(loop, rights, err, err_size);
	return ret ? ret : rights_begin(rights, err, err_size);
}

int start_without_rights(const struct rights *rights, char *err, size_t err_size)
{
	const int ret = rights_give_up(rights, err, err_size);

	collect_taps_let_go();
	return ret ? ret : confine(CONFINE_DAEMON, err, err_size);
}
