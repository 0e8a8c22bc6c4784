/* openflow_numbers.h: numbers of the OpenFlow 1.3 specification that both writing and reading take. */
#ifndef OAL_OPENFLOW_NUMBERS_H
#define OAL_OPENFLOW_NUMBERS_H

enum {
	VERSION_13 = 4,
	HELLO_VERSION_BITMAP = 1,
	MULTIPART_AGGREGATE = 2,
};

#endif
