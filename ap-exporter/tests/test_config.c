/* The configuration file: what is accepted, and how a mistake is told. */
#include "check.h"
#include "base/config.h"
#include "base/text_file.h"
#include "base/uci.h"

#include <errno.h>

static struct config c;
static char err[1024];

static int parse(const char *text)
{
	err[0] = '\0';
	return config_parse(&c, text, strlen(text), err, sizeof err);
}

#define SINK "config file 'f'\n\toption path '/tmp/x'\n"
#define SOURCE "config qdisc\n\toption interface eth0\n"

/* The text is refused and the message has all of these pieces. */
static void refused(const char *text, const char *piece, const char *piece2)
{
	CHECK_EQ(parse(text), -EINVAL);
	if (!strstr(err, piece) || !strstr(err, piece2)) {
		printf("# message is: %s\n", err);
		CHECK(!"message names the mistake");
	}
}

/* What the package ships samples, and sends nothing anywhere until its owner says where. */
static void shipped(void)
{
	static char text[16384];
	FILE *file = fopen("files/ap-exporter.config", "r");
	CHECK(file != NULL);
	if (!file)
		return;
	size_t len = fread(text, 1, sizeof text - sizeof SINK, file);
	CHECK(feof(file));
	fclose(file);
	text[len] = '\0';
	refused(text, "no sink", "kafka");
	strcat(text, SINK);
	if (parse(text) < 0) {
		printf("# %s\n", err);
		CHECK(!"the shipped configuration is good");
	}
	/* Where packets have their stations' addresses, on the port that current OpenWrt has. */
	CHECK(c.n_tap == 1 && !c.n_packet && !strcmp(c.tap[0].interface, "phy0-ap0"));
}

static void kill_files(void)
{
	char long_name[5000];

	test("a file that cannot be looked for may be there; one that is absent is not");
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = 0;
	CHECK(text_file_may_be("/") && text_file_may_be(long_name));
	CHECK(!text_file_may_be("/nowhere/at/all") && !text_file_may_be("/dev/null/x") && !text_file_may_be("") &&
	      !text_file_may_be(NULL));
}

int main(void)
{
	test("options are read with their quotes, comments and defaults");
	CHECK_EQ(parse("# comment\npackage ap-exporter\n\nconfig exporter 'main' # more\n\toption ap_id "
	               "\"ap\\-7\"\n\toption site 'a b'c\n"
	               "config packet\n option interface lan1\n option snaplen 128\nconfig packet 'second'\n option "
	               "interface 'lan2'\n" SINK),
	         0);
	CHECK(!strcmp(c.exporter.ap_id, "ap-7"));
	CHECK(!strcmp(c.exporter.site, "a bc"));
	CHECK(!strcmp(c.exporter.status_socket, "/var/run/ap-exporter.sock"));
	CHECK_EQ(c.n_packet, 2);
	CHECK_EQ(c.packet[0].snaplen, 128);
	CHECK_EQ(c.packet[1].snaplen, 96);
	CHECK(!strcmp(c.packet[1].interface, "lan2"));
	CHECK_EQ(c.n_file, 1);

	test("a file with DOS line ends is read");
	CHECK_EQ(parse("config qdisc\r\n\toption interface eth0\r\nconfig file\r\n\toption path x\r\n"), 0);
	CHECK(!strcmp(c.qdisc[0].interface, "eth0"));

	test("a tap is bpf, packet, or what the kernel takes; and no packet is read by two of them");
	CHECK_EQ(parse("config tap\n option interface phy0-ap0\nconfig tap\n option interface phy1-ap0\n option tap "
	               "packet\n option ring_kb 1024\n" SINK),
	         0);
	CHECK(c.n_tap == 2 && !strcmp(c.tap[0].tap, "auto") && c.tap[0].ring_kb == 256 && c.tap[1].ring_kb == 1024);
	CHECK(config_wants_bpf_tap(&c));
	CHECK_EQ(parse("config tap\n option interface a\n option tap packet\n" SINK), 0);
	CHECK(!config_wants_bpf_tap(&c));
	refused("config tap\n option interface a\n option tap ebpf\n" SINK, "'tap'", "auto, bpf or packet");
	refused("config tap\n option interface a\nconfig tap\n option interface a\n" SINK, "two sections",
	        "one interface");
	refused("config tap\n option interface a\nconfig packet\n option interface b\n" SINK, "'packet'", "twice");

	test("a list joins with commas");
	CHECK_EQ(parse(SOURCE "config kafka\n list brokers a:1\n list brokers b:2\n option plaintext 1\n"), 0);
	CHECK(!strcmp(c.kafka.brokers, "a:1,b:2"));

	test("a disabled section is as if it were not there, whatever it lacks");
	CHECK_EQ(parse("config nl80211\n option enabled 0\nconfig nl80211\n option interface wlan1\n" SINK), 0);
	CHECK_EQ(c.n_nl80211, 1);
	CHECK(!strcmp(c.nl80211[0].interface, "wlan1"));
	CHECK_EQ(c.nl80211[0].idle_interval_ticks, 25);

	test("an unknown option is named with its line");
	refused(SINK "config qdisc\n\toption interfaec eth0\n", "line 4", "'interfaec'");
	test("an unknown section type is named with its line");
	refused("config foo\n", "line 1", "'foo'");
	test("a number out of its range is refused with the range and the unit");
	refused("config packet\n option interface a\n option snaplen 20\n", "line 3", "80 to 256");
	refused("config packet\n option snaplen 1e3\n", "line 2", "'snaplen'");
	refused("config packet\n option snaplen -1\n", "line 2", "'snaplen'");
	refused("config packet\n option snaplen 99999999999999999999999\n", "line 2", "'snaplen'");
	test("a switch is 0 or 1");
	refused("config replay\n option loop maybe\n", "line 2", "'loop'");
	test("a missing needed option is named");
	refused("config packet 'p'\n option snaplen 96\n" SINK, "line 3", "'option interface'");
	refused(SINK "config packet 'p'\n", "'packet p'", "'option interface'");
	test("a value given twice is refused");
	refused("config packet\n option interface a\n option interface b\n", "line 3", "twice");
	test("a list for a single value is refused");
	refused("config packet\n list interface a\n", "line 2", "'option', not 'list'");
	test("too long a value is refused");
	refused("config packet\n option interface abcdefghijklmnopqrstuvwxyz\n", "line 2", "longer than 14");
	test("more sections than there is room for are refused");
	refused("config file\n option path a\nconfig file\n option path b\n", "line 3", "more than 1");
	test("an option before any section is refused");
	refused("option a b\n", "line 1", "before the first");
	test("an open quote is refused");
	refused("config 'file\n", "line 1", "not closed");
	refused("config file\n option path \"a\n", "line 2", "not closed");
	test("a value with blanks that is not quoted is refused");
	refused("config exporter\n option site a b\n", "line 2", "quote");
	test("a word that is no keyword is refused");
	refused("confg file\n", "line 1", "'confg'");
	test("binary bytes are refused");
	CHECK_EQ(config_parse(&c, "config\0file\n", 12, err, sizeof err), -EINVAL);
	CHECK(strstr(err, "NUL") != NULL);
	test("a configuration without a sink, or without a source, is refused");
	refused(SOURCE, "no sink", "kafka");
	refused(SINK, "nothing to collect", "replay");
	test("Kafka needs TLS files, or to be told that it needs none");
	refused(SOURCE "config kafka\n option brokers a:1\n", "'ca', 'certificate' and 'key'", "plaintext");
	refused(SOURCE "config kafka\n option brokers a:1\n option plaintext 1\n option ca x\n", "leave one out",
	        "TLS");
	test("an AP's name is one that Kafka and a certificate can bear");
	refused(SOURCE SINK "config exporter\n option ap_id 'a b'\n", "'ap_id'", "letters");
	test("without a name the AP takes the host's");
	CHECK_EQ(parse(SOURCE SINK), 0);
	CHECK(c.exporter.ap_id[0] != '\0');

	test("a file that is not there is named");
	CHECK_EQ(config_load(&c, "/nonexistent/ap-exporter", err, sizeof err), -ENOENT);
	CHECK(strstr(err, "/nonexistent/ap-exporter") != NULL);
	test("the configuration that the package ships is good once a sink is enabled, and lacks nothing else");
	shipped();
	kill_files();
	return done();
}
