/* tc_hooks.h: the clsact qdisc of a port, on which tc programs hang. Others may use it, too: it goes with the last
 * filter, and only where this process made it. For one thread. */
#ifndef OAL_TC_HOOKS_H
#define OAL_TC_HOOKS_H

/* The port `index` has hooks afterwards: 0 also where somebody else made them. Negative errno. */
int tc_hooks_create(unsigned index);
/* Removes them if this process made them and no filter is left on them. */
void tc_hooks_remove(unsigned index);
/* The port is gone, and its hooks with it. */
void tc_hooks_forget(unsigned index);

#endif
