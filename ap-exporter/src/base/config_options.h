/* config_options.h: every section and option of the configuration, as a table; of config*.c alone. */
#ifndef OAL_CONFIG_OPTIONS_H
#define OAL_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_kind { CONFIG_TEXT, CONFIG_NUMBER, CONFIG_SWITCH };

struct config_option {
	const char *name;
	enum config_kind kind;
	size_t at, size;           /* in the section's struct */
	const char *text;          /* default of CONFIG_TEXT */
	uint32_t value, min, max;  /* default and range of CONFIG_NUMBER; default of CONFIG_SWITCH */
	bool required, list;       /* list: several values are joined by a comma */
	const char *help;          /* with the unit */
};

struct config_section {
	const char *type;
	size_t at, size, count_at;
	uint32_t most;
	const struct config_option *options;
	uint32_t n_options;
	const char *help;
};

extern const struct config_section config_sections[]; /* the first is `exporter` */
extern const size_t config_n_sections;

struct config;

/* What is wrong with the sections `rwnd`, `mark` and `congestion`; NULL: nothing. */
const char *config_wrong_control(const struct config *);

#endif
