// SPDX-License-Identifier: GPL-2.0-only
/* device.c: /dev/oal-sampler, and the life of a sampler: from OAL_SAMPLER_START to the last close or unmap. The
 * module cannot be removed in between. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#include "sampler.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "oal_sampler is for Linux 6.1 to 6.12: it was run on no other"
#endif

#define SAMPLERS_MAX 16
#define AHEAD_NS (10ULL * NSEC_PER_SEC) /* the first tick is not farther off */

static DEFINE_MUTEX(starting); /* guards file->private_data, `samplers`, and what starts and stops */
static unsigned int samplers;

static void free_sampler(struct sampler *s)
{
	if (!s)
		return;
	vfree(s->area);
	put_net(s->net);
	bitmap_free(s->due);
	kfree(s->info);
	kvfree(s);
}

static int check(const struct oal_sampler_start *w)
{
	if (w->version != OAL_SAMPLER_VERSION)
		return -EPROTO;
	if (w->tick_ns < NSEC_PER_MSEC || w->tick_ns > NSEC_PER_SEC || !w->active_hold_ticks ||
	    w->max_stations < 1 || w->max_stations > OAL_SAMPLER_STATIONS_MAX ||
	    w->ring_bytes < OAL_SAMPLER_RING_MIN || w->ring_bytes > OAL_SAMPLER_RING_MAX ||
	    !is_power_of_2(w->ring_bytes) || w->first_ns > ktime_get_ns() + AHEAD_NS)
		return -EINVAL;
	return 0;
}

static int check_interface(struct net *net, u32 ifindex)
{
	struct net_device *dev;
	int ret = 0;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, ifindex);
	if (!dev)
		ret = -ENODEV;
	else if (!tick_is_mac80211(dev))
		ret = -EOPNOTSUPP;
	rcu_read_unlock();
	return ret;
}

static struct sampler *new_sampler(const struct oal_sampler_start *w)
{
	struct sampler *s = kvzalloc(struct_size(s, slots, w->max_stations), GFP_KERNEL);

	if (!s)
		return NULL;
	s->want = *w;
	s->net = get_net(current->nsproxy->net_ns);
	s->area_bytes = PAGE_ALIGN(OAL_SAMPLER_RING_AT + w->ring_bytes);
	s->area = vmalloc_user(s->area_bytes);
	s->due = bitmap_zalloc(w->max_stations, GFP_KERNEL);
	s->info = kzalloc(sizeof(*s->info), GFP_KERNEL);
	if (!s->area || !s->due || !s->info) {
		free_sampler(s);
		return NULL;
	}
	s->header = s->area;
	s->reader = s->area + OAL_SAMPLER_READER_AT;
	s->ring = s->area + OAL_SAMPLER_RING_AT;
	spin_lock_init(&s->lock);
	INIT_WORK(&s->work, counters_work);
	hrtimer_init(&s->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	s->timer.function = tick_begin;
	return s;
}

static void stop(struct sampler *s)
{
	hrtimer_cancel(&s->timer); /* after which nobody queues work */
	cancel_work_sync(&s->work);
}

/* Everything as at first; the first tick is the first of the reader's that is still to come. */
static void begin(struct sampler *s, const struct oal_sampler_start *w)
{
	const u64 now = ktime_get_ns(), first = w->first_ns;
	const u64 n = now < first ? 0 : div_u64(now - first, w->tick_ns) + 1;

	spin_lock_bh(&s->lock);
	s->want = *w;
	s->ops = NULL;
	s->head = s->lost = s->missed = s->wanted = s->used = s->seen = s->refused = 0;
	s->tick_ns = s->counters_ns = s->rest_until = 0;
	s->reading = false;
	s->tick = n - 1;
	s->active_at = s->idle_at = s->look_at = s->kept_up = n;
	s->state = OAL_SAMPLER_RUNNING;
	bitmap_zero(s->due, w->max_stations);
	stations_init(s);
	memset(s->header, 0, sizeof(*s->header));
	memset(s->reader, 0, sizeof(*s->reader));
	s->header->magic = OAL_SAMPLER_MAGIC;
	s->header->version = OAL_SAMPLER_VERSION;
	s->header->ring_bytes = w->ring_bytes;
	s->reader->active_interval_ticks = s->reader->idle_interval_ticks = 25;
	ring_publish(s);
	spin_unlock_bh(&s->lock);
	hrtimer_start(&s->timer, ns_to_ktime(first + n * w->tick_ns), HRTIMER_MODE_ABS_SOFT);
}

/* The file's sampler, made if there is none. Under `starting`. */
static struct sampler *sampler_of(struct file *file, const struct oal_sampler_start *w)
{
	struct sampler *s = file->private_data;

	if (s)
		return s->want.max_stations == w->max_stations && s->want.ring_bytes == w->ring_bytes ?
			       s : ERR_PTR(-EINVAL);
	if (samplers >= SAMPLERS_MAX)
		return ERR_PTR(-ENOSPC);
	s = new_sampler(w);
	if (!s)
		return ERR_PTR(-ENOMEM);
	samplers++;
	file->private_data = s;
	return s;
}

static long start(struct file *file, const void __user *arg)
{
	struct oal_sampler_start want;
	struct sampler *s;
	int ret;

	if (copy_from_user(&want, arg, sizeof(want)))
		return -EFAULT;
	ret = check(&want);
	if (!ret)
		ret = check_interface(current->nsproxy->net_ns, want.ifindex);
	if (ret)
		return ret;
	mutex_lock(&starting);
	s = sampler_of(file, &want);
	if (!IS_ERR(s)) {
		stop(s);
		begin(s, &want);
	}
	mutex_unlock(&starting);
	return PTR_ERR_OR_ZERO(s);
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case OAL_SAMPLER_START:
		return start(file, (const void __user *)arg);
	case OAL_SAMPLER_STOP:
		mutex_lock(&starting);
		if (file->private_data)
			stop(file->private_data);
		mutex_unlock(&starting);
		return 0;
	default:
		return -ENOTTY;
	}
}

static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct sampler *s;

	mutex_lock(&starting);
	s = file->private_data;
	mutex_unlock(&starting);
	if (!s || vma->vm_pgoff || vma->vm_end - vma->vm_start > s->area_bytes)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	return remap_vmalloc_range(vma, s->area, 0);
}

static int device_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL; /* misc puts its own there */
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct sampler *s = file->private_data;

	if (!s)
		return 0;
	stop(s);
	free_sampler(s);
	mutex_lock(&starting);
	samplers--;
	mutex_unlock(&starting);
	return 0;
}

static const struct file_operations device_ops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = device_mmap,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "oal-sampler",
	.fops = &device_ops,
	.mode = 0600,
};

module_misc_device(device);

MODULE_LICENSE("GPL v2");
MODULE_AUTHOR("The OAL authors");
MODULE_DESCRIPTION("Stations and transmit queues of mac80211 at a steady rate, in a mapped ring");
