/* ticket.h: the one-time ticket with which an AP is enrolled: base64url of JSON
 * {"v":1,"url","ap_id","site","token","ca"}. It is a secret until it is used. */
#ifndef OAL_TICKET_H
#define OAL_TICKET_H

#include <stddef.h>

enum { TICKET_MAX = 16384 };

struct ticket {
	char ap_id[65], site[65]; /* site: may be empty */
	char url[256]; /* of the enrolment listener, without a final slash */
	char token[512];
	char ca[TICKET_MAX]; /* PEM: the authority that signed the service */
};

/* Blanks around it are left out. 0, or -EINVAL with what is wrong in `err`. */
int ticket_parse(struct ticket *, const char *text, size_t len, char *err, size_t err_size);

#endif
