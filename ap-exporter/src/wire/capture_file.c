#include "wire/capture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "oal_schema.h"

const uint8_t capture_magic[CAPTURE_MAGIC_BYTES] = {'O', 'A', 'L', 'C', 'A', 'P', 1, 0};
static const uint8_t record_magic[4] = {'O', 'A', 'L', 'r'};
enum { AT_TOPIC = 4, AT_LEN = 8, AT_T0 = 12, AT_CRC = 20 };

/* CRC-32 of IEEE 802.3, reflected, four bits at a time: a small table, and a capture is not written at line rate. */
static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	                                   0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	                                   0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

	crc = ~crc;
	while (n--) {
		crc ^= *p++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

static void write_le(uint8_t *p, uint64_t v, unsigned n)
{
	while (n--) {
		*p++ = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t get_le(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static uint32_t checksum(const uint8_t header[CAPTURE_HEADER_BYTES], const uint8_t *bytes, size_t len)
{
	return crc32(crc32(0, header + AT_TOPIC, AT_CRC - AT_TOPIC), bytes, len);
}

void capture_header(uint8_t h[CAPTURE_HEADER_BYTES], const struct capture_record *r)
{
	memset(h, 0, CAPTURE_HEADER_BYTES);
	memcpy(h, record_magic, sizeof record_magic);
	h[AT_TOPIC] = (uint8_t)r->topic;
	write_le(h + AT_LEN, r->len, 4);
	write_le(h + AT_T0, r->t0_us, 8);
	write_le(h + AT_CRC, checksum(h, r->bytes, r->len), 4);
}

/* --- writing */

/* Two parts as one: a system call for both. */
static int write_all(int fd, const uint8_t *first, size_t n, const uint8_t *second, size_t m)
{
	struct iovec parts[2] = { { (void *)(uintptr_t)first, n }, { (void *)(uintptr_t)second, m } };

	while (parts[0].iov_len + parts[1].iov_len) {
		const ssize_t r = writev(fd, parts, 2);
		size_t done = r > 0 ? (size_t)r : 0;

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		for (int i = 0; i < 2; i++) {
			const size_t here = done < parts[i].iov_len ? done : parts[i].iov_len;

			parts[i].iov_base = (uint8_t *)parts[i].iov_base + here;
			parts[i].iov_len -= here;
			done -= here;
		}
	}
	return 0;
}

int capture_create(struct capture_writer *w, const char *path)
{
	int r;

	w->size = 0;
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return -errno;
	r = write_all(w->fd, capture_magic, sizeof capture_magic, NULL, 0);
	if (r) {
		close(w->fd);
		w->fd = -1;
		return r;
	}
	w->size = sizeof capture_magic;
	return 0;
}

int capture_append(struct capture_writer *w, const struct capture_record *record)
{
	uint8_t header[CAPTURE_HEADER_BYTES];
	int r;

	capture_header(header, record);
	r = write_all(w->fd, header, sizeof header, record->bytes, record->len);
	if (!r) {
		w->size += sizeof header + record->len;
	} else if (ftruncate(w->fd, (off_t)w->size) || lseek(w->fd, (off_t)w->size, SEEK_SET) < 0) {
		/* A pipe or a device: what was written stays, and a reader finds the next record by its magic. */
	}
	return r;
}

int capture_close(struct capture_writer *w)
{
	const int r = w->fd >= 0 && close(w->fd) ? -errno : 0;

	w->fd = -1;
	return r;
}

/* --- reading */

bool capture_is(const uint8_t *bytes, size_t len)
{
	return len >= sizeof capture_magic && !memcmp(bytes, capture_magic, sizeof capture_magic);
}

int capture_open(struct capture_reader *r, const uint8_t *bytes, size_t len)
{
	*r = (struct capture_reader){.start = bytes, .at = bytes, .end = bytes + len};
	if (!capture_is(bytes, len))
		return -EINVAL;
	r->at += sizeof capture_magic;
	return 0;
}

static bool record_at(const struct capture_reader *r, const uint8_t *p, struct capture_record *out)
{
	size_t len;

	if (r->end - p < CAPTURE_HEADER_BYTES || memcmp(p, record_magic, sizeof record_magic))
		return false;
	len = (size_t)get_le(p + AT_LEN, 4);
	if (p[AT_TOPIC] >= OAL_N_TOPICS || len > OAL_SETTING_MAX_BATCH_BYTES ||
	    len > (size_t)(r->end - p) - CAPTURE_HEADER_BYTES)
		return false;
	if (get_le(p + AT_CRC, 4) != checksum(p, p + CAPTURE_HEADER_BYTES, len))
		return false;
	out->topic = p[AT_TOPIC];
	out->bytes = p + CAPTURE_HEADER_BYTES;
	out->len = len;
	out->t0_us = get_le(p + AT_T0, 8);
	return true;
}

bool capture_next(struct capture_reader *r, struct capture_record *out)
{
	const uint8_t *p = r->at;

	while (p < r->end && !record_at(r, p, out)) {
		/* The magic's first byte is where the next record can begin. */
		p = p + 1 < r->end ? memchr(p + 1, record_magic[0], (size_t)(r->end - p - 1)) : NULL;
		if (!p)
			p = r->end;
	}
	r->skipped_bytes += (uint64_t)(p - r->at);
	r->breaks += p > r->at;
	r->at = p;
	if (p == r->end)
		return false;
	r->at = out->bytes + out->len;
	return true;
}

int capture_load(const char *path, uint8_t **bytes, size_t *len)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t n = 0;
	int error = 0;

	*bytes = NULL;
	*len = 0;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = -EINVAL;
	else if (st.st_size > INT32_MAX)
		error = -EFBIG;
	else if (!(*bytes = malloc((size_t)st.st_size + 1)))
		error = -ENOMEM;
	while (!error && n < (size_t)st.st_size) {
		const ssize_t r = read(fd, *bytes + n, (size_t)st.st_size - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			error = -errno;
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	close(fd);
	if (error) {
		free(*bytes);
		*bytes = NULL;
		return error;
	}
	*len = n;
	return 0;
}
