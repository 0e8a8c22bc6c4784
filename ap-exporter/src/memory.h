/* What the daemon keeps in memory. */
#ifndef OAL_MEMORY_H
#define OAL_MEMORY_H

/*
 * Gives back what only the start needed: free heap, and the mapped pages of code, most of which ran once (OpenSSL's and
 * librdkafka's set-up). Code that is still needed comes back from the page cache as it is used. Parses /proc/self/maps:
 * not for the tick path.
 */
void memory_trim(void);

#endif
