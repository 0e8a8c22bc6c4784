#include "model/inspect.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/bundle.h"
#include "base/log.h"

enum { ERR = 256 };

/* A file of at most one byte more than a bundle may have, so that one too large is seen as such. NULL: the log says
 * why. */
static uint8_t *read_bundle(const char *path, size_t *len)
{
	uint8_t *bytes = malloc(OAL_SETTING_MAX_BUNDLE_BYTES + 1);
	FILE *f = fopen(path, "re");

	if (f && bytes) {
		*len = fread(bytes, 1, OAL_SETTING_MAX_BUNDLE_BYTES + 1, f);
		if (!ferror(f)) {
			fclose(f);
			return bytes;
		}
	}
	log_error("cannot read the bundle %s: %s", path, strerror(errno));
	if (f)
		fclose(f);
	free(bytes);
	return NULL;
}

/* --- bundle */

/* Printable ASCII as a JSON string. */
static void print_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', out);
}

static void print_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, ", \"%s\": ", name);
	print_string(out, text);
}

static void print_hex(FILE *out, const char *name, const uint8_t *bytes, unsigned n)
{
	fprintf(out, ", \"%s\": \"", name);
	while (n--)
		fprintf(out, "%02x", *bytes++);
	fputc('"', out);
}

static void print_head(FILE *out, const struct bundle_head *h)
{
	static const char *const sources[] = { "unknown", "registry", "online" };

	if (!h->bytes)
		return;
	fprintf(out, ", \"bytes\": %" PRIu32 ", \"id\": %" PRIu64, h->bytes, h->id);
	print_hex(out, "hash", h->hash, sizeof h->hash);
	if (!h->serial)
		return;
	fprintf(out, ", \"serial\": %" PRId64 ", \"version\": %" PRIu32, h->serial, h->version);
	print_text(out, "source", sources[h->source <= 2 ? h->source : 0]);
	print_text(out, "target", h->target);
	print_text(out, "model", h->model);
}

static unsigned depth_of(const struct node *nodes, unsigned at)
{
	unsigned left, right;

	if (nodes[at].feature == NODE_LEAF)
		return 0;
	left = depth_of(nodes, at + 1);
	right = depth_of(nodes, nodes[at].right);
	return 1 + (left > right ? left : right);
}

static void print_policy(FILE *out, const struct oal_policy *p)
{
	unsigned i;

	if (!p)
		return;
	fputs(", \"policy\": {\"name\": ", out);
	print_string(out, p->name);
	fprintf(out, ", \"version\": %" PRIu32 ", \"control\": {", p->version);
	for (i = 0; i < OAL_N_POLICY_FIELDS; i++)
		fprintf(out, "%s\"%s\": %" PRIu32, i ? ", " : "", oal_policy_fields[i].name,
		        oal_policy_get(p, (enum oal_policy_field)i));
	fputs("}, \"weights\": {", out);
	for (i = 0; i < p->n_weights; i++)
		fprintf(out, "%s\"%" PRIu32 "\": %" PRIu32, i ? ", " : "", p->weight_port[i], p->weight_permille[i]);
	fputs("}}", out);
}

/* Policy, law and models, whatever the format. */
static void print_law(FILE *out, const struct bundle *b)
{
	const struct bundle_law *l = bundle_law(b);
	unsigned i;

	print_text(out, "of_policy", bundle_head(b)->of_policy);
	fprintf(out, ", \"law\": {\"name\": \"%s\", \"subject\": \"%s\", \"action\": \"%s\", \"values\": [", l->name,
	        l->subject, l->action);
	for (i = 0; i < l->n_values; i++)
		fprintf(out, "%s%" PRId64, i ? ", " : "", l->values[i]);
	fputs("]}, \"models\": {", out);
	for (i = 0; i < bundle_n_models(b); i++) {
		fputs(i ? ", " : "", out);
		print_string(out, bundle_model(b, i)->role);
		fprintf(out, ": \"%s\"", bundle_model(b, i)->ops->kind);
	}
	fputc('}', out);
}

static void print_content(FILE *out, const struct bundle *b)
{
	static const char *const modes[] = OAL_POLICY_MODES;
	const struct tree *t = bundle_tree(b);
	const struct sum *w = bundle_window(b);

	print_law(out, b);
	print_text(out, "mode", modes[bundle_mode(b)]);
	fprintf(out, ", \"features\": %" PRIu32, bundle_program(b)->n);
	print_hex(out, "program", bundle_program(b)->hash, sizeof bundle_program(b)->hash);
	if (t)
		fprintf(out, ", \"tree\": {\"nodes\": %u, \"depth\": %u}", t->n, depth_of(t->nodes, 0));
	if (w)
		fprintf(out, ", \"window\": {\"trees\": %u, \"nodes\": %u, \"inputs\": %u}", w->n_trees, w->n_nodes,
		        w->n_inputs);
	print_policy(out, bundle_policy(b));
	fprintf(out, ", \"memory_bytes\": %zu", bundle_memory(b));
}

int inspect_bundle(const char *path, const struct inspect_terms *want, FILE *out)
{
	struct bundle_terms terms = { .verify = signature_verify_openssl, .ap_id = want->ap_id, .site = want->site };
	enum oal_bundle_reason reason;
	struct trusted_keys keys;
	struct bundle_head head;
	struct bundle *b;
	char err[ERR];
	uint8_t *bytes;
	size_t len;

	if (want->keys) {
		if (trusted_keys_read(&keys, want->keys, err, sizeof err) < 0) {
			log_error("%s", err);
			return 2;
		}
		terms.keys = &keys;
	}
	bytes = read_bundle(path, &len);
	if (!bytes)
		return 2;
	reason = bundle_open(&b, bytes, len, &terms, &head, err, sizeof err);
	fprintf(out, "{\"accepted\": %s, \"signature_checked\": %s", b ? "true" : "false",
	        want->keys ? "true" : "false");
	if (!b) {
		print_text(out, "reason", bundle_reason_name(reason));
		print_text(out, "detail", err);
	}
	print_head(out, &head);
	if (b)
		print_content(out, b);
	fputs("}\n", out);
	bundle_free(b);
	free(bytes);
	return reason != OAL_BUNDLE_REASON_NONE;
}

/* --- predict */

/* One value of a line; moves past it and the comma. */
static bool parse_value(char **at, int64_t *v)
{
	char *end;

	while (**at == ' ')
		(*at)++;
	if (**at == '-' && !isdigit((unsigned char)(*at)[1])) {
		end = *at + 1;
		*v = OAL_MISSING;
	} else if (**at == ',' || !**at) {
		end = *at;
		*v = OAL_MISSING;
	} else {
		errno = 0;
		*v = strtoll(*at, &end, 10);
		if (errno || end == *at)
			return false;
	}
	while (*end == ' ')
		end++;
	if (*end && *end != ',')
		return false;
	*at = *end ? end + 1 : end;
	return true;
}

static bool parse_line(char *line, int64_t *x, unsigned n)
{
	char *at = line;
	unsigned i, commas = 0;

	line[strcspn(line, "\r\n")] = 0;
	for (i = 0; line[i]; i++)
		commas += line[i] == ',';
	if (commas + 1 != n)
		return false;
	for (i = 0; i < n; i++)
		if (!parse_value(&at, &x[i]))
			return false;
	return true;
}

static unsigned flow_inputs(const struct sum *w)
{
	unsigned i, n = 0;

	for (i = 0; w && i < w->n_inputs; i++)
		n += w->inputs[i] < 0;
	return n;
}

static void predict(const struct bundle *b, const int64_t *x, FILE *out)
{
	const struct tree *t = bundle_tree(b);
	const struct sum *w = bundle_window(b);
	const unsigned leaf = tree_apply(t, x);
	const struct tree_leaf l = tree_leaf(t, leaf);
	const int64_t *flow = x + bundle_program(b)->n;
	int64_t inputs[SUM_MAX_INPUTS];
	unsigned i;

	fprintf(out, "%u,%u,%u", leaf, l.class, tree_congested_permille(l));
	if (w) {
		for (i = 0; i < w->n_inputs; i++)
			inputs[i] = w->inputs[i] < 0 ? *flow++ : x[w->inputs[i]];
		fprintf(out, ",%" PRId64, sum_predict(w, inputs));
	}
	fputc('\n', out);
}

int inspect_predict(const char *path, FILE *in, FILE *out)
{
	const struct bundle_terms any = { 0 };
	enum oal_bundle_reason reason;
	int64_t x[OAL_MAX_FEATURES + SUM_MAX_INPUTS];
	unsigned n, number = 0;
	struct bundle *b;
	size_t len, room = 0;
	char err[ERR], *line = NULL;
	uint8_t *bytes = read_bundle(path, &len);
	int ret = 0;

	if (!bytes)
		return 1;
	reason = bundle_open(&b, bytes, len, &any, NULL, err, sizeof err);
	free(bytes);
	if (reason != OAL_BUNDLE_REASON_NONE) {
		log_error("%s: %s: %s", path, bundle_reason_name(reason), err);
		return 1;
	}
	if (!bundle_tree(b)) {
		log_error("%s: it has no model of role class: nothing is predicted", path);
		bundle_free(b);
		return 1;
	}
	n = bundle_program(b)->n + flow_inputs(bundle_window(b));
	while (!ret && getline(&line, &room, in) >= 0) {
		if (!number++ && isalpha((unsigned char)line[0]))
			continue;
		if (parse_line(line, x, n)) {
			predict(b, x, out);
		} else {
			log_error("line %u: %u integers separated by commas are needed: %" PRIu32
			          " features, %u columns of the flow table",
			          number, n, bundle_program(b)->n, n - bundle_program(b)->n);
			ret = 1;
		}
	}
	free(line);
	bundle_free(b);
	return ret;
}
