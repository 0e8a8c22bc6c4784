/* agent.h: keeps each AP of the process at its desired bundle: pulls by long poll, verifies, has it put in force,
 * reports, keeps the last good one on flash. One thread for all APs; the tick thread only meets inference.h.
 *
 * A bundle replaces the one in force only after it passed every check. Whatever the service sends, or does not send,
 * the AP goes on with what it has. */
#ifndef OAL_AGENT_H
#define OAL_AGENT_H

#include "base/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct inference;
struct peers;

#ifdef HAVE_AGENT
/* Are its files and folder there, and good? 0, or negative errno with what to do in `err`. Touches nothing. */
int agent_check(const struct config *, char *err, size_t err_size);
/* Reads keys and CA. Negative errno with the reason in `err`. `c` must outlive the agent. `previous` (may be NULL) is
 * the one that it is to replace: what the kill switch says goes over to the same APs; it is not used after
 * agent_start(). */
int agent_new(struct agent **, const struct config *c, const struct agent *previous, char *err, size_t err_size);
/* An AP, before agent_start(): reads its certificate and its bundle of last time. Inferences, one a policy with
 * rwnd-fair's first, and peers are the AP's, and used until agent_stop(). */
int agent_add(struct agent *, const char *ap_id, uint64_t boot_id, struct inference *const *, struct peers *, char *err,
	      size_t err_size);
int agent_start(struct agent *, char *err, size_t err_size);
/* Writes what is in force to flash now, for a successor; waits for at most two seconds. */
void agent_save(struct agent *);
/* The tick thread has news for the agent's. Any thread, from agent_new() to agent_free(); `agent` is one. */
void agent_wake(void *agent);
/* Ends the thread, with what is in force on flash. The APs may go on. */
void agent_stop(struct agent *);
/* After the last use of the APs. */
void agent_free(struct agent *);
/* Since the last question: were certificates and keys renewed, so that other users of those files should read them
 * again? By the tick thread. */
bool agent_renewed(struct agent *);
/* Its state as a JSON object; returns the length, less than `size`. By the tick thread. */
size_t agent_json(struct agent *, char *buf, size_t size);
#else
static inline int agent_check(const struct config *c, char *err, size_t err_size) { return 0; }
static inline int agent_new(struct agent **a, const struct config *c, const struct agent *previous, char *err,
			    size_t err_size)
{
	return 0;
}
static inline int agent_add(struct agent *a, const char *ap_id, uint64_t boot_id, struct inference *const *f,
			    struct peers *p, char *err, size_t err_size)
{
	return 0;
}
static inline void agent_wake(void *agent) {}
static inline int agent_start(struct agent *a, char *err, size_t err_size) { return 0; }
static inline void agent_save(struct agent *a) {}
static inline void agent_stop(struct agent *a) {}
static inline void agent_free(struct agent *a) {}
static inline bool agent_renewed(struct agent *a) { return false; }
static inline size_t agent_json(struct agent *a, char *buf, size_t size) { return 0; }
#endif

#endif
