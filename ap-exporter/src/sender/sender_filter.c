#include "sender/sender_filter.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

/* The next word of a list, up to its comma; its length, or 0 at the end. */
static size_t next_word(const char **at, char word[WORD])
{
	size_t len;

	while (**at == ',' || **at == ' ')
		++*at;
	len = strcspn(*at, ", ");
	memcpy(word, *at, len < WORD ? len : WORD - 1);
	word[len < WORD ? len : WORD - 1] = '\0';
	*at += len;
	return len;
}

static const char *parse_ports(struct sender_filter *f, const char *list)
{
	char word[WORD], *end;
	unsigned long port;

	while (next_word(&list, word)) {
		port = strtoul(word, &end, 10);
		if (word[0] < '0' || word[0] > '9' || *end || !port || port > UINT16_MAX)
			return "'port' is a list of numbers from 1 to 65535";
		if (f->n_ports == SENDER_FILTER_PORTS)
			return "'port' has more than 32 numbers";
		f->ports[f->n_ports++] = (uint16_t)port;
	}
	return NULL;
}

const char *sender_filter_parse(struct sender_filter *f, const char *ports, const char *peers, bool loopback)
{
	const char *wrong;
	char word[WORD];

	memset(f, 0, sizeof *f);
	f->loopback = loopback;
	wrong = parse_ports(f, ports);
	while (!wrong && next_word(&peers, word)) {
		if (f->n_peers == SENDER_FILTER_PEERS)
			return "'peer' has more than 16 networks";
		if (pcap_network_parse(&f->peers[f->n_peers++], word))
			wrong = "'peer' is a list of networks like 192.168.0.0/16 or 2001:db8::/32";
	}
	return wrong;
}

bool sender_filter_takes(const struct sender_filter *f, const struct sender_look *l)
{
	bool port = !f->n_ports, peer = !f->n_peers;
	unsigned i;

	for (i = 0; i < f->n_ports && !port; i++)
		port = f->ports[i] == l->flow.near_port;
	for (i = 0; i < f->n_peers && !peer; i++)
		peer = pcap_network_has(&f->peers[i], l->flow.far, l->flow.addr_len);
	return port && peer && (f->loopback || !l->loopback);
}
