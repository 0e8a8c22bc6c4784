/* test_http_header.c: what an answer's header lines say to an AP. */
#include "enrol/http.h"

#include "check.h"

static struct http_answer answer_of(const char *line)
{
	struct http_answer a = { 0 };

	http_header_read(&a, line, strlen(line));
	return a;
}

static bool says(const char *line, const char *policies)
{
	const struct http_answer a = answer_of(line);

	return a.policies_said && !strcmp(a.policies, policies);
}

static bool says_nothing(const char *line)
{
	const struct http_answer a = answer_of(line), none = { 0 };

	return !memcmp(&a, &none, sizeof a);
}

int main(void)
{
	char line[2 * HTTP_POLICIES] = "OAL-Policies:";
	struct http_answer a;
	unsigned i;

	test("OAL-Policies is a list of names, also an empty one");
	CHECK(says("OAL-Policies: rwnd-fair example\r\n", "rwnd-fair example"));
	CHECK(says("oal-policies:a\r\n", "a"));
	CHECK(says("Oal-Policies: \r\n", ""));
	CHECK(says("Oal-Policies:", ""));
	CHECK(says("OAL-Policies: abcdefghijklmnopqrstuvwxyz-0123\r\n", "abcdefghijklmnopqrstuvwxyz-0123"));

	test("a list that is not well written, or too long, says nothing");
	CHECK(says_nothing("OAL-Policies: rwnd-fair  example"));
	CHECK(says_nothing("OAL-Policies: rwnd-fair,example"));
	CHECK(says_nothing("OAL-Policies: Example"));
	CHECK(says_nothing("OAL-Policies: 1a"));
	CHECK(says_nothing("OAL-Policies: a\"b"));
	CHECK(says_nothing("OAL-Policies: abcdefghijklmnopqrstuvwxyz-01234"));
	CHECK(says_nothing("OAL-Policies"));
	for (i = 0; i <= HTTP_POLICIES / 2; i++)
		strcat(line, " a");
	CHECK(says_nothing(line));

	test("OAL-Killed is a list too; one that is not well written, or longer than an AP keeps, is unclear");
	a = answer_of("OAL-Killed: mark uplink-cap\r\n");
	CHECK(a.killed_said && !a.killed_unclear && !strcmp(a.killed, "mark uplink-cap"));
	a = answer_of("oal-killed:\r\n");
	CHECK(a.killed_said && !a.killed_unclear && !a.killed[0]);
	a = answer_of("OAL-Killed: a b c d e f g h");
	CHECK(!a.killed_unclear && !strcmp(a.killed, "a b c d e f g h"));
	CHECK(answer_of("OAL-Killed: a b c d e f g h i").killed_unclear);
	CHECK(answer_of("OAL-Killed: Mark").killed_unclear);
	CHECK(answer_of("OAL-Killed: mark  cap").killed_unclear);
	CHECK(answer_of("OAL-Killed: mark,cap").killed_unclear);
	memcpy(line, "OAL-Killed:  ", 13);
	CHECK(answer_of(line).killed_unclear);

	test("OAL-Policy, ETag, OAL-Activate-At and OAL-Control are read, and nonsense in them is not");
	a = answer_of("OAL-Policy: example\r\n");
	CHECK(!strcmp(a.policy, "example") && !a.policies_said);
	CHECK(says_nothing("OAL-Policy: two names"));
	CHECK(says_nothing("OAL-Policy: "));
	a = answer_of("ETag: W/\"abc\"\r\n");
	CHECK(!strcmp(a.etag, "abc"));
	CHECK(says_nothing("ETag: \"a b\""));
	CHECK_EQ(answer_of("OAL-Activate-At: 17").activate_at_us, 17);
	CHECK(says_nothing("OAL-Activate-At: 17x"));
	CHECK_EQ(answer_of("OAL-Control: off").control, HTTP_CONTROL_OFF);
	CHECK_EQ(answer_of("OAL-Control: on").control, HTTP_CONTROL_ON);
	CHECK(says_nothing("OAL-Control: ON"));
	CHECK(says_nothing("X: rwnd-fair"));
	return done();
}
