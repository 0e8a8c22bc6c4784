/* What the daemon keeps in memory. */
#ifndef OAL_MEMORY_H
#define OAL_MEMORY_H

/*
 * Gives back what only the start needed: free heap, and the mapped pages of code and constants, most of which were used
 * once (OpenSSL's and librdkafka's set-up). What is still needed comes back from the page cache as it is used. Parses
 * /proc/self/smaps: not for the tick path.
 */
void memory_trim(void);

#endif
