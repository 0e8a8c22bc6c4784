/* rwnd_bpf.h: descriptors of the bpf backend's programs and maps, for its tests and its bench. */
#ifndef OAL_RWND_BPF_H
#define OAL_RWND_BPF_H

struct rwnd;

struct rwnd_bpf_fds {
	int up, down; /* programs */
	int clamps, scales, counters; /* maps */
};
struct rwnd_bpf_fds rwnd_bpf_fds(const struct rwnd *);

#endif
