/* tap.h: TCP headers of a port, both directions, read once a tick. Two ways: `bpf`, tc programs that copy headers into
 * a ring (tap_bpf.c), and `packet`, a packet socket (tap_packet.c), which sees no frames but TCP. Neither makes a
 * system call per packet.
 *
 * All functions but check() are called by one thread. */
#ifndef OAL_TAP_H
#define OAL_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame, valid during the call. */
struct tap_frame {
	const uint8_t *bytes; /* from its Ethernet header on */
	uint32_t captured, length; /* bytes: of `bytes`; of the frame on the wire */
	uint64_t t_us; /* realtime */
	bool outgoing; /* it left by this port */
};
typedef void (*tap_frame_cb)(void *ctx, const struct tap_frame *);

struct tap_config {
	const char *section, *interface; /* of the configuration: section for messages */
	uint32_t ring_kb, snaplen; /* snaplen: bytes kept of each frame by `packet`; `bpf` takes what are headers */
	uint32_t max_stations; /* whose bytes can be counted at once */
};

/* Running totals since open(), except where a line says "now". */
struct tap_stats {
	uint64_t frames; /* that went by; of `packet` those of TCP alone */
	uint64_t packets; /* handed over */
	uint64_t overruns; /* lost, because the ring was full */
	uint64_t losses; /* times that the port went away */
	bool attached; /* now */
	const char *last_error; /* why it could not be attached the last time; empty: it could */
};

/* All frames of a station that the tap saw, whatever they held: running totals. */
struct tap_station {
	uint64_t down_bytes, up_bytes;
};

typedef void (*tap_station_cb)(void *ctx, uint64_t mac, const struct tap_station *);

struct tap_ops {
	const char *name; /* as in the configuration */
	/* Can it work here? 0, or negative errno with the reason in `err`. Leaves nothing behind. */
	int (*check)(const struct tap_config *, char *err, size_t err_size);
	/* Also where the port is not there yet. `self` is the tap's own, ended by close(). */
	int (*open)(void **self, const struct tap_config *, char *err, size_t err_size);
	/* Hands over what came since. `to_realtime_us`: what is to be added to monotonic time. */
	void (*read)(void *self, int64_t to_realtime_us, tap_frame_cb, void *ctx);
	/* Once a second: is the port there, and is the tap still on it? */
	void (*second)(void *self);
	void (*stats)(void *self, struct tap_stats *);
	/* Counts this station's bytes from now on (`wanted`), or no longer. NULL: it counts none. Negative errno:
	 * -E2BIG beyond max_stations, where that is known at once. */
	int (*station)(void *self, uint64_t mac, bool wanted);
	/* Calls this with what was counted from now on; NULL: nothing any more. */
	void (*on_station_bytes)(void *self, tap_station_cb, void *ctx);
	/* Queries what it counted of a station: the callback comes at once, or before long. -ENOENT: nothing. */
	int (*station_bytes)(void *self, uint64_t mac);
	void (*close)(void *self);
};

extern const struct tap_ops tap_bpf, tap_packet;

#endif
