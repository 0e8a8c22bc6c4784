/* Lines on stderr, where procd (or Supervisor, or a terminal) picks them up. Never called in the tick path. */
#ifndef OAL_LOG_H
#define OAL_LOG_H

void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
