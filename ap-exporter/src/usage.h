/* usage.h: what the program says of its commands; which there are depends on what it is built with. */
#ifndef OAL_USAGE_H
#define OAL_USAGE_H

#include <stdio.h>

#if defined(HAVE_BPF) || defined(HAVE_OVS)
#define HAVE_RWND /* a build without backends has no room for the command either */
#endif

/* The program's exit status: 0 on standard output, else 2. */
int usage(FILE *);

#endif
