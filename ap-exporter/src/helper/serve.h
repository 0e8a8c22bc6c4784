/* serve.h: the trusted part: what is done with privileges once the exporter runs. It and what it calls (lint_rooms.py
 * names the files) is counted, and stays small. */
#ifndef OAL_HELPER_SERVE_H
#define OAL_HELPER_SERVE_H

#include "helper/record.h"
#include "tc/tc_place.h"

/* A command that has none of them is refused. */
enum helper_field { HELPER_BARE = 1, HELPER_FLOW = 2, HELPER_MAC = 4, HELPER_CLAMP = 8 };

/* A pair of programs with their maps, in the kernel. */
struct helper_slot {
	struct tc_place place; /* which, and the ports that they may be on */
	uint8_t fields[HELPER_COMMANDS]; /* enum helper_field, a bit each, that a record of this command has */
	/* Carries out SET, RELEASE, CLEAR and READ of a record that has nothing but its fields; their values it checks
	 * itself. 0 or negative errno for the answer, whose values it fills; -EBADMSG: malformed. */
	int (*command)(void *self, const struct helper_record *, struct helper_answer *);
	void *self; /* NULL: the slot is free */
	int maps[2]; /* descriptors that `command` needs; 0: none */
};

/* The slots of this process. They are filled while the exporter starts. */
extern struct helper_slot helper_slots[HELPER_SLOTS];

/* 0, with an answer to be given if `*answered`; -EBADMSG: no daemon of ours sends such a record. */
int helper_carry_out(const struct helper_record *, struct helper_answer *, int *answered);
/* Serves records until the other end is gone or one is malformed, then takes all programs off their ports. */
void helper_serve(int channel);

#endif
