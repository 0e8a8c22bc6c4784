/* request.h: a netlink request of the guest's tools: built, sent, waited for. Errors end the program. */
#ifndef OAL_REQUEST_H
#define OAL_REQUEST_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

struct request {
	struct nlmsghdr head;
	uint8_t body[4096];
};

/* Ends the program with this sentence and, if `error` is not 0, what that errno means. */
_Noreturn void die(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A message of this type that begins with the `size` bytes of `fixed`; `flags` on top of NLM_F_REQUEST | NLM_F_ACK. */
void request_begin(struct request *, uint16_t type, uint16_t flags, const void *fixed, size_t size);
void request_put(struct request *, uint16_t attribute, const void *value, size_t size);
/* Bytes that are no attribute. */
void request_raw(struct request *, const void *bytes, size_t size);
void request_u8(struct request *, uint16_t attribute, uint8_t);
void request_u16(struct request *, uint16_t attribute, uint16_t);
void request_u32(struct request *, uint16_t attribute, uint32_t);
void request_text(struct request *, uint16_t attribute, const char *);
/* An attribute that holds those put until request_close(); returns what that wants. */
size_t request_open(struct request *, uint16_t attribute);
void request_close(struct request *, size_t opened);

/* A netlink socket of this protocol. */
int request_socket(int protocol);
/* Sends, and waits for the answer: 0 or a negative errno of the kernel's. */
int request_send(int socket, struct request *);
/* Waits for the next answer: as request_send(). */
int request_answer(int socket);
/* The id of a generic netlink family. */
uint16_t request_family(int socket, const char *name);
/* A generic netlink request. */
void request_generic(struct request *, uint16_t family, uint8_t command);
/* The index of an interface; ends the program if there is none of this name. */
uint32_t interface_index(const char *name);

#endif
