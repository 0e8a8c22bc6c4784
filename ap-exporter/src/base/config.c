#include "base/config.h"

#include "base/config_options.h"
#include "base/text_file.h"
#include "base/uci.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX_BYTES 65536

struct reading {
	struct config *config;
	const struct config_section *section; /* open one */
	unsigned char *base;           /* its struct */
	uint64_t given;                /* bit i: option i was given */
	char label[CONFIG_NAME + 32];  /* how errors call it */
};

static void defaults(const struct config_section *s, unsigned char *base)
{
	memset(base, 0, s->size);
	for (uint32_t i = 0; i < s->n_options; i++) {
		const struct config_option *o = &s->options[i];

		if (o->kind == CONFIG_TEXT)
			memcpy(base + o->at, o->text, strlen(o->text) + 1);
		else if (o->kind == CONFIG_NUMBER)
			memcpy(base + o->at, &o->value, 4);
		else
			*(bool *)(base + o->at) = o->value;
	}
}

/* The open section has ended: a required option must be there; a disabled section is forgotten. */
static int close_section(struct reading *r, char *err, size_t err_size)
{
	const struct config_section *s = r->section;
	uint32_t *count;

	if (!s)
		return 0;
	r->section = NULL;
	count = (uint32_t *)((unsigned char *)r->config + s->count_at);
	if (!*(bool *)r->base) { /* `enabled` is the first member of every section's struct */
		--*count;
		defaults(s, r->base);
		return 0;
	}
	for (uint32_t i = 0; i < s->n_options; i++) {
		if (s->options[i].required && !(r->given >> i & 1)) {
			snprintf(err, err_size, "%s before this line needs 'option %s' (%s)", r->label,
			         s->options[i].name, s->options[i].help);
			return -EINVAL;
		}
	}
	return 0;
}

static int open_section(void *ctx, const char *type, const char *name, char *err, size_t err_size)
{
	struct reading *r = ctx;
	int ret = close_section(r, err, err_size), len;

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < config_n_sections; i++) {
		const struct config_section *s = &config_sections[i];
		uint32_t *count = (uint32_t *)((unsigned char *)r->config + s->count_at);

		if (strcmp(s->type, type))
			continue;
		if (*count >= s->most) {
			snprintf(err, err_size, "more than %u section%s of type '%s'", s->most, s->most > 1 ? "s" : "",
			         type);
			return -EINVAL;
		}
		r->section = s;
		r->base = (unsigned char *)r->config + s->at + *count * s->size;
		r->given = 0;
		snprintf(r->label, sizeof r->label, "section '%s%s%.64s'", type, name[0] ? " " : "", name);
		++*count;
		defaults(s, r->base);
		return 0;
	}
	len = snprintf(err, err_size, "unknown section type '%.64s'; known:", type);
	for (size_t i = 0; i < config_n_sections && len > 0 && (size_t)len < err_size; i++)
		len += snprintf(err + len, err_size - (size_t)len, " %s", config_sections[i].type);
	return -EINVAL;
}

static int set_number(const struct config_option *o, unsigned char *base, const char *value, char *err, size_t err_size)
{
	char *end;
	unsigned long long v;
	uint32_t n;

	errno = 0;
	v = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || v < o->min || v > o->max) {
		snprintf(err, err_size, "option '%s' is '%.64s'; it is a number from %u to %u (%s)", o->name, value,
		         o->min, o->max, o->help);
		return -EINVAL;
	}
	n = (uint32_t)v;
	memcpy(base + o->at, &n, 4);
	return 0;
}

static int set_switch(const struct config_option *o, unsigned char *base, const char *value, char *err, size_t err_size)
{
	static const char *const on[] = { "1", "yes", "on", "true", "enabled" };
	static const char *const off[] = { "0", "no", "off", "false", "disabled" };

	for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
		if (strcmp(value, on[i]) && strcmp(value, off[i]))
			continue;
		*(bool *)(base + o->at) = !strcmp(value, on[i]);
		return 0;
	}
	snprintf(err, err_size, "option '%s' is '%.64s'; it is 0 or 1 (%s)", o->name, value, o->help);
	return -EINVAL;
}

static int set_text(const struct config_option *o, unsigned char *base, const char *value, bool append, char *err,
                    size_t err_size)
{
	char *text = (char *)base + o->at;
	size_t have = append ? strlen(text) : 0, need = strlen(value);

	if (have + need + 2 > o->size) {
		snprintf(err, err_size, "option '%s' is longer than %zu bytes", o->name, o->size - 2);
		return -EINVAL;
	}
	if (have)
		text[have++] = ',';
	memcpy(text + have, value, need + 1);
	return 0;
}

static int set_option(void *ctx, const char *name, const char *value, bool list, char *err, size_t err_size)
{
	struct reading *r = ctx;

	for (uint32_t i = 0; i < r->section->n_options; i++) {
		const struct config_option *o = &r->section->options[i];
		bool again = r->given >> i & 1;

		if (strcmp(o->name, name))
			continue;
		if ((list || again) && !(list && o->list)) {
			snprintf(err, err_size,
			         list ? "option '%s' takes one value: write 'option', not 'list'"
			              : "option '%s' is given twice",
			         name);
			return -EINVAL;
		}
		if (o->required && !value[0]) {
			snprintf(err, err_size, "option '%s' is empty (%s)", name, o->help);
			return -EINVAL;
		}
		r->given |= UINT64_C(1) << i;
		return o->kind == CONFIG_NUMBER ? set_number(o, r->base, value, err, err_size)
		     : o->kind == CONFIG_SWITCH ? set_switch(o, r->base, value, err, err_size)
					 : set_text(o, r->base, value, list && again, err, err_size);
	}
	snprintf(err, err_size, "unknown option '%.64s' in %s", name, r->label);
	return -EINVAL;
}

/* Where the clients are, unless the section says so itself: the access point's interfaces. */
static void clients_ports(const struct config *c, char *interface, size_t size)
{
	size_t len = 0;

	if (!interface[0])
		for (uint32_t i = 0; i < c->n_nl80211; i++)
			len += (size_t)snprintf(interface + len, size - len, "%s%s", i ? "," : "",
			                        c->nl80211[i].interface);
}

/* What is wrong with the sections `nl80211`; NULL: nothing. */
static const char *wrong_radios(const struct config *c)
{
#ifdef HAVE_KMOD /* else there is no such option */
	for (uint32_t i = 0; i < c->n_nl80211; i++)
		if (strcmp(c->nl80211[i].stations, "auto") && strcmp(c->nl80211[i].stations, "nl80211"))
			return "section 'nl80211': 'stations' is auto or nl80211";
#endif
	return NULL;
}

/* What is wrong with the sections `tap`; NULL: nothing. */
static const char *wrong_taps(const struct config *c)
{
	for (uint32_t i = 0; i < c->n_tap; i++) {
		if (strcmp(c->tap[i].tap, "auto") && strcmp(c->tap[i].tap, "bpf") && strcmp(c->tap[i].tap, "packet"))
			return "section 'tap': 'tap' is auto, bpf or packet";
		for (uint32_t k = 0; k < i; k++)
			if (!strcmp(c->tap[i].interface, c->tap[k].interface))
				return "two sections 'tap' of one interface";
	}
	if (c->n_tap && c->n_packet)
		return "sections 'tap' and 'packet': packets would count twice, keep one";
	return NULL;
}

#ifdef HAVE_BPF
bool config_wants_bpf_tap(const struct config *c)
{
	for (uint32_t i = 0; i < c->n_tap; i++)
		if (strcmp(c->tap[i].tap, "packet"))
			return true;
	return false;
}
#endif

/* What no single option shows. */
static int check(struct config *c, char *err, size_t err_size)
{
	struct config_kafka *k = &c->kafka;
	char *id = c->exporter.ap_id;
	const char *wrong = NULL;

	if (!c->n_exporter)
		defaults(&config_sections[0], (unsigned char *)&c->exporter);
	c->exporter.named = id[0];
	if (!id[0] && (gethostname(id, CONFIG_NAME) < 0 || !id[0]))
		wrong = "option 'ap_id' is empty and this host has no name";
	id[CONFIG_NAME - 1] = '\0';
	for (const char *p = id; *p && !wrong; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			wrong = "option 'ap_id' has a character other than letters, digits, '.', '_' and '-'";
#ifndef HAVE_KAFKA
	if (!wrong && c->n_kafka)
		wrong = "section 'kafka': this " OAL_PROGRAM " was built without Kafka; "
		        "use the package with it, or a section 'file'";
#endif
	if (!wrong && c->n_kafka) {
		if (!k->plaintext && (!k->ca[0] || !k->certificate[0] || !k->key[0]))
			wrong = "section 'kafka' needs 'ca', 'certificate' and 'key' "
			        "(or 'plaintext 1' for a loopback listener)";
		else if (k->plaintext && (k->ca[0] || k->certificate[0] || k->key[0]))
			wrong = "section 'kafka' has 'plaintext 1' and TLS files: leave one out";
		else if (k->inflight_kb > k->buffer_kb)
			wrong = "section 'kafka': 'inflight_kb' is larger than 'buffer_kb'";
	}
#ifndef HAVE_AGENT
	if (!wrong && c->n_agent)
		wrong = "section 'agent': this " OAL_PROGRAM " was built without the agent; use the package with it";
#endif
	if (!wrong && c->n_agent &&
	    (strncmp(c->agent.url, "https://", 8) || !c->agent.url[8] || strpbrk(c->agent.url, " ?#\"")))
		wrong = "section 'agent': 'url' is like https://HOST:PORT, without parameters";
	for (const char *p = c->exporter.site; c->n_agent && *p && !wrong; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			wrong = "with a section 'agent', option 'site' has letters, digits, '.', '_' and '-' only: "
			        "bundles are addressed to it";
	if (!wrong)
		wrong = config_wrong_control(c);
	if (!wrong && !c->n_kafka && !c->n_file)
		wrong = "no sink: add a section 'kafka' or 'file'";
	if (!wrong)
		wrong = wrong_radios(c);
	if (!wrong)
		wrong = wrong_taps(c);
	if (!wrong && !c->n_tcp && !c->n_nl80211 && !c->n_qdisc && !c->n_packet && !c->n_tap && !c->n_beacon &&
	    !c->n_replay)
		wrong = "nothing to collect: add a section like " OAL_COLLECTS;
	if (c->n_rwnd)
		clients_ports(c, c->rwnd.interface, sizeof c->rwnd.interface);
	if (c->n_mark)
		clients_ports(c, c->mark.interface, sizeof c->mark.interface);
	if (!wrong)
		return 0;
	snprintf(err, err_size, "%s", wrong);
	return -EINVAL;
}

int config_parse(struct config *c, const char *text, size_t len, char *err, size_t err_size)
{
	static const struct uci_handler handler = { open_section, set_option };
	struct reading r = { .config = c };
	int ret;

	memset(c, 0, sizeof *c);
	ret = uci_parse(text, len, &handler, &r, err, err_size);
	if (!ret) {
		ret = close_section(&r, err, err_size);
		if (ret < 0) {
			char *at = strstr(err, " before this line");

			if (at) /* the file ended instead */
				memmove(at, at + sizeof " before this line" - 1,
				        strlen(at + sizeof " before this line" - 1) + 1);
		}
	}
	return ret ? ret : check(c, err, err_size);
}

int config_load(struct config *c, const char *path, char *err, size_t err_size)
{
	char why[768], *text;
	size_t len;
	int ret = text_file_read(&text, &len, path, CONFIG_MAX_BYTES);

	if (ret) {
		snprintf(err, err_size, "cannot read configuration %s: %s", path,
		         ret == -EFBIG ? "larger than 64 KiB" : ret == -ENOMEM ? "out of memory" : strerror(-ret));
		return ret;
	}
	ret = config_parse(c, text, len, why, sizeof why);
	if (ret < 0)
		snprintf(err, err_size, "configuration %s: %s", path, why);
	free(text);
	return ret;
}

void config_ap_path(char *out, size_t size, const char *pattern, const char *ap_id)
{
	const char *at = strstr(pattern, "%s");

	if (at)
		snprintf(out, size, "%.*s%s%s", (int)(at - pattern), pattern, ap_id, at + 2);
	else
		snprintf(out, size, "%s", pattern);
}

void config_virtual_ap(char *out, size_t size, const char *ap_id, unsigned aps, unsigned i)
{
	if (aps == 1)
		snprintf(out, size, "%s", ap_id);
	else
		snprintf(out, size, "%s-%04u", ap_id, i + 1);
}

void config_print_options(FILE *f)
{
	for (size_t i = 0; i < config_n_sections; i++) {
		const struct config_section *s = &config_sections[i];

		fprintf(f, "\nconfig %s  (%s; at most %u)\n", s->type, s->help, s->most);
		for (uint32_t k = 0; k < s->n_options; k++) {
			const struct config_option *o = &s->options[k];

			if (o->kind == CONFIG_NUMBER)
				fprintf(f, "  %-23s %u  [%u…%u]  %s\n", o->name, o->value, o->min, o->max, o->help);
			else if (o->kind == CONFIG_SWITCH)
				fprintf(f, "  %-23s %u  [0, 1]  %s\n", o->name, o->value, o->help);
			else
				fprintf(f, "  %-23s %s  %s\n", o->name,
				        o->required ? "(needed)" : o->text[0] ? o->text : "''", o->help);
		}
	}
}
