#ifdef HAVE_AGENT
/* What follows a failure: it is noted for the status, and the next try waits: longer each time, and no two APs alike.
 */
#include "agent/agent_ap_state.h"

#include <stdarg.h>
#include <stdio.h>

static const uint64_t FIRST_WAIT_US = SECOND_US / 2; /* after one failure; twice as long after each further one */

void agent_note_error(struct agent_ap *ap, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ap->view.last_error, sizeof ap->view.last_error, format, args);
	va_end(args);
}

uint64_t agent_random_below(struct agent_shared *s, uint64_t n)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return n ? s->random * UINT64_C(2685821657736338717) % n : 0;
}

/* Half of it to all of it: APs that lost the service together do not come back together. */
uint64_t agent_jitter(struct agent_shared *s, uint64_t us)
{
	return us - agent_random_below(s, us / 2 + 1);
}

uint64_t agent_backoff_us(struct agent_shared *s, unsigned failures)
{
	const uint64_t most = s->config->retry_max_s * SECOND_US;
	uint64_t us = FIRST_WAIT_US;

	while (--failures && us < most)
		us *= 2;
	return agent_jitter(s, us < most ? us : most);
}

/* When to try again after this answer: not before the service asks for it, nor before our own wait is over. */
uint64_t agent_retry_at_us(const struct http_answer *a, uint64_t wait_us, uint64_t now_us)
{
	const uint64_t asked_us = a->retry_after_s * SECOND_US;

	return now_us + (asked_us > wait_us ? asked_us : wait_us);
}
#endif
