/* tc_error.h: why libbpf failed. It logs several lines; the first one is the cause, the rest is its trace. */
#ifndef OAL_TC_ERROR_H
#define OAL_TC_ERROR_H

/* From here on the first warning is kept; libbpf prints nothing. */
void tc_error_begin(void);
/* The first warning since then; empty: none. */
const char *tc_error_text(void);

#endif
