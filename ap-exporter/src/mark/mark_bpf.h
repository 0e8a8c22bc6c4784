/* mark_bpf.h: descriptors of the bpf backend's programs and maps, for its tests and its bench. */
#ifndef OAL_MARK_BPF_H
#define OAL_MARK_BPF_H

struct mark;

struct mark_bpf_fds {
	int up, down; /* programs */
	int states, spacings, counters; /* maps */
};
struct mark_bpf_fds mark_bpf_fds(const struct mark *);

#endif
