#include "model/bundle_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REFUSE(...) (snprintf(err, err_size, __VA_ARGS__), -EINVAL)

static int within(const char *name, uint32_t value, uint32_t min, uint32_t max, char *err, size_t err_size)
{
	return value >= min && value <= max ? 0 : REFUSE("%s %u; %u to %u", name, value, min, max);
}

/* A policy without a name has no control: anything but a mode in it is a mistake. */
static int check_nameless(const struct oal_policy *p, const struct pb_field *f, char *err, size_t err_size)
{
	const char *given = p->version ? "version" : NULL;
	int i;

	if (p->mode == OAL_POLICY_MODE_ENFORCE)
		return REFUSE("name is missing: only a named policy may enforce");
	for (i = 0; i < OAL_N_POLICY_FIELDS && !given; i++)
		if (oal_policy_get(p, (enum oal_policy_field)i))
			given = oal_policy_fields[i].name;
	if (!given && f[OAL_POLICY_FIELD_WEIGHT_PORT].n)
		given = "weight_port";
	if (!given && f[OAL_POLICY_FIELD_WEIGHT_PERMILLE].n)
		given = "weight_permille";
	return given ? REFUSE("name is missing, but %s is given", given) : 0;
}

static int check_numbers(const struct oal_policy *p, char *err, size_t err_size)
{
	int i, ret;

	for (i = 0; i < OAL_N_POLICY_FIELDS; i++) {
		const struct oal_policy_field_spec *const s = &oal_policy_fields[i];

		ret = within(s->name, oal_policy_get(p, (enum oal_policy_field)i), s->min, s->max, err, err_size);
		if (ret)
			return ret;
	}
	for (i = 0; i < OAL_POLICY_N_RULES; i++) {
		const struct oal_policy_rule *const r = &oal_policy_rules[i];
		const char *const low = oal_policy_fields[r->low].name, *const high = oal_policy_fields[r->high].name;
		const uint32_t a = oal_policy_get(p, r->low), b = oal_policy_get(p, r->high);

		if ((uint64_t)r->times * a > b)
			return REFUSE("%s %u is more than %u: %u times %s is at most %s (%u)", low, a, b / r->times,
			              r->times, low, high, b);
	}
	return 0;
}

static int read_weights(struct oal_policy *p, const struct part *part, char *err, size_t err_size)
{
	const uint32_t n = part->fields[OAL_POLICY_FIELD_WEIGHT_PORT].n,
		       n_values = part->fields[OAL_POLICY_FIELD_WEIGHT_PERMILLE].n;
	struct pb_list ports, values;
	uint32_t i, k;
	int ret = 0;

	if (n != n_values || n > OAL_POLICY_MAX_WEIGHTS)
		return REFUSE("weight_port has %u and weight_permille %u values; as many each, at most %d", n, n_values,
		              OAL_POLICY_MAX_WEIGHTS);
	pb_list_begin(&ports, part->at, part->len, OAL_POLICY_FIELD_WEIGHT_PORT, PB_U32);
	pb_list_begin(&values, part->at, part->len, OAL_POLICY_FIELD_WEIGHT_PERMILLE, PB_U32);
	for (i = 0; i < n && !ret; i++) {
		const uint32_t port = (uint32_t)pb_list_next(&ports), value = (uint32_t)pb_list_next(&values);

		ret = within("weight_port", port, OAL_POLICY_WEIGHT_PORT_MIN, OAL_POLICY_WEIGHT_PORT_MAX, err,
		             err_size);
		if (!ret)
			ret = within("weight_permille", value, OAL_POLICY_WEIGHT_PERMILLE_MIN,
			             OAL_POLICY_WEIGHT_PERMILLE_MAX, err, err_size);
		for (k = 0; k < i && !ret; k++)
			if (p->weight_port[k] == port)
				ret = REFUSE("weight_port %u is there twice", port);
		p->weight_port[i] = port;
		p->weight_permille[i] = value;
	}
	p->n_weights = n;
	return ret;
}

int bundle_part_policy(struct oal_policy *p, const struct part *part, char *err, size_t err_size)
{
	const struct pb_field *const f = part->fields;
	int i, ret;

	memset(p, 0, sizeof *p);
	p->mode = (uint32_t)f[OAL_POLICY_FIELD_MODE].value;
	p->version = (uint32_t)f[OAL_POLICY_FIELD_VERSION].value;
	if (f[OAL_POLICY_FIELD_NAME].at)
		memcpy(p->name, f[OAL_POLICY_FIELD_NAME].at, f[OAL_POLICY_FIELD_NAME].len);
	for (i = 0; i < OAL_N_POLICY_FIELDS; i++)
		oal_policy_set(p, (enum oal_policy_field)i, (uint32_t)f[oal_policy_fields[i].field].value);
	ret = within("mode", p->mode, OAL_POLICY_MODE_OFF, OAL_POLICY_MODE_ENFORCE, err, err_size);
	if (!ret && !p->name[0])
		return check_nameless(p, f, err, err_size);
	if (!ret)
		ret = within("version", p->version, 1, UINT32_MAX, err, err_size);
	if (!ret)
		ret = check_numbers(p, err, err_size);
	return ret ? ret : read_weights(p, part, err, err_size);
}
