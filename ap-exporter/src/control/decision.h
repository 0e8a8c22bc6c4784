/* decision.h: what one AP predicts, made into rows: connects a slot of its data path with the inference that evaluates
 * it. Tick thread. */
#ifndef OAL_DECISION_CALLS_H
#define OAL_DECISION_CALLS_H

struct feature_vector;
struct inference;
struct pipeline;

/* A tick has begun: reports what the agent's thread left to report, and takes over a bundle whose turn has come. */
void decision_begin_tick(struct pipeline *, struct inference *);
/* A decision instant: has it evaluated, and writes the row `decision` if there is a verdict. */
void decision_make(struct pipeline *, struct inference *, const struct feature_vector *);

#endif
