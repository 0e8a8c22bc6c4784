/* tap_bpf.h: descriptors of the tap's programs and maps, for its tests and its bench. */
#ifndef OAL_TAP_BPF_H
#define OAL_TAP_BPF_H

struct tap_bpf_fds {
	int up, down; /* programs */
};
/* Of an open tap of tap_bpf. */
struct tap_bpf_fds tap_bpf_fds(const void *self);

#endif
