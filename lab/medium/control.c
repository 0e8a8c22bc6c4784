// SPDX-License-Identifier: GPL-2.0
/*
 * control.c - /sys/kernel/debug/hwsim_medium: what a scenario writes and what a test reads.
 *   links     write "MAC rate_kbps loss_permille signal_dbm" to add or change a link, "MAC" alone to forget it; read:
 *             all
 *   losses    read: see losses.c
 *   channels  write "freq_mhz foreign_permille burst_us ext_permille noise_dbm"; read: totals per channel, in ns and
 *             counts
 */

static int medium_links_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < MEDIUM_LINKS; i++)
		if (medium_links[i].used)
			seq_printf(s, "%pM %u %u %d\n", medium_links[i].addr, medium_links[i].rate_kbps,
				   medium_links[i].per_permille, medium_links[i].signal_dbm);
	return 0;
}

static int medium_link_set(const char *line)
{
	unsigned int rate_kbps, per_permille;
	struct medium_link *link;
	char mac[18];
	u8 addr[ETH_ALEN];
	int signal_dbm, n, i;

	n = sscanf(line, "%17s %u %u %d", mac, &rate_kbps, &per_permille, &signal_dbm);
	if (n < 1 || !mac_pton(mac, addr))
		return -EINVAL;
	link = (struct medium_link *)medium_link_find(addr);
	if (n == 1) {
		if (link)
			WRITE_ONCE(link->used, false);
		return 0;
	}
	if (n != 4 || per_permille > 1000 || signal_dbm < -120 || signal_dbm > 0)
		return -EINVAL;
	for (i = 0; !link && i < MEDIUM_LINKS; i++)
		if (!medium_links[i].used)
			link = &medium_links[i];
	if (!link)
		return -ENOSPC;
	ether_addr_copy(link->addr, addr);
	link->rate_kbps = rate_kbps;
	link->per_permille = per_permille;
	link->signal_dbm = signal_dbm;
	WRITE_ONCE(link->used, true);
	return 0;
}

static int medium_channels_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < MEDIUM_CHANNELS && media[i].freq_mhz; i++) {
		struct medium *m = &media[i];

		spin_lock_bh(&m->lock);
		medium_foreign_catch_up(m, ktime_get_ns());
		seq_printf(s, "freq=%u busy_ns=%llu success_ns=%llu collision_ns=%llu beacon_ns=%llu foreign_ns=%llu "
			   "ext_ns=%llu txops=%llu collisions=%llu internal_collisions=%llu mpdus=%llu "
			   "mpdus_lost=%llu mpdus_failed=%llu bytes=%llu\n",
			   m->freq_mhz, m->busy_ns, m->success_ns, m->collision_ns, m->beacon_ns, m->foreign_ns,
			   m->ext_ns, m->txops, m->collisions, m->internal_collisions, m->mpdus, m->mpdus_lost,
			   m->mpdus_failed, m->bytes);
		spin_unlock_bh(&m->lock);
	}
	return 0;
}

static int medium_channel_set(const char *line)
{
	unsigned int freq, foreign, burst_us, ext;
	struct ieee80211_channel channel = {};
	struct medium *m;
	int noise;

	if (sscanf(line, "%u %u %u %u %d", &freq, &foreign, &burst_us, &ext, &noise) != 5 || foreign > 950 ||
	    !burst_us ||
	    burst_us > 20000 || ext > 1000 || noise < -120 || noise > 0)
		return -EINVAL;
	channel.center_freq = freq;
	m = medium_of(&channel);
	if (!m)
		return -ENOSPC;
	spin_lock_bh(&m->lock);
	m->foreign_permille = foreign;
	m->foreign_burst_us = burst_us;
	m->foreign_ext_permille = ext;
	m->noise_dbm = noise;
	medium_foreign_next(m, ktime_get_ns());
	spin_unlock_bh(&m->lock);
	return 0;
}

static ssize_t medium_write(struct file *file, const char __user *from, size_t n, int (*set)(const char *line))
{
	char buf[128];
	int err;

	if (n >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, from, n))
		return -EFAULT;
	buf[n] = 0;
	err = set(buf);
	return err ? err : n;
}

static ssize_t medium_links_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	return medium_write(file, from, n, medium_link_set);
}

static ssize_t medium_channels_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	return medium_write(file, from, n, medium_channel_set);
}

static int medium_links_open(struct inode *inode, struct file *file)
{
	return single_open(file, medium_links_show, NULL);
}

static int medium_channels_open(struct inode *inode, struct file *file)
{
	return single_open(file, medium_channels_show, NULL);
}

static const struct file_operations medium_links_fops = {
	.open = medium_links_open, .read = seq_read, .write = medium_links_write, .llseek = seq_lseek,
	.release = single_release,
};

static const struct file_operations medium_channels_fops = {
	.open = medium_channels_open, .read = seq_read, .write = medium_channels_write, .llseek = seq_lseek,
	.release = single_release,
};

static void medium_control_init(void)
{
	struct dentry *dir = debugfs_create_dir("hwsim_medium", NULL);

	debugfs_create_file("links", 0600, dir, NULL, &medium_links_fops);
	debugfs_create_file("channels", 0600, dir, NULL, &medium_channels_fops);
	medium_losses_init(dir);
}
