package api

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oal/deploy/internal/config"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// champions releases to everyone, one of each policy, and returns the tags.
func (x *fixture) champions(policies ...string) (tags []string) {
	var offers []*rollout.Offer
	var known []*release.Release
	for _, policy := range policies {
		x.serial++
		key, value, hash := x.signer.ReleaseOf(policy, release.Champion, "fleet", 1, x.serial, nil)
		rel, err := release.Parse(key, value, x.signer.Keys())
		if err != nil {
			x.t.Fatal(err)
		}
		tags, known = append(tags, `"`+hash+`"`), append(known, rel)
		offers = append(offers, &rollout.Offer{Slot: rel.Slot, Scope: rel.Scope, Release: rel, Rollout: rel.ID(),
			All: true})
	}
	x.fleet.SetOffers(offers, known)
	return tags
}

func TestPollOfSeveralPolicies(t *testing.T) {
	x := start(t, config.Limits{})
	ap := x.client("a", "ap")
	tags := x.champions("rwnd-fair", "example")
	poll := func(policies, inForce string) *http.Response {
		return x.do(ap, "GET", "/v1/aps/a/bundle", "", "OAL-Policies", policies, "If-None-Match", inForce)
	}
	says := func(what string, response *http.Response, code int, policy, tag, policies string) {
		t.Helper()
		expect(t, what, response, code)
		h := response.Header
		list, said := h["Oal-Policies"]
		if h.Get("OAL-Policy") != policy || h.Get("ETag") != tag || !said || list[0] != policies ||
			h.Get("OAL-Control") != "on" {
			t.Errorf("%s: headers %v", what, h)
		}
	}
	const both = "rwnd-fair example"
	says("it has nothing", poll("", ""), 200, "rwnd-fair", tags[0], both)
	says("it has the first", poll("rwnd-fair", tags[0]), 200, "example", tags[1], both)
	says("it has both", poll(both, tags[0]+", "+tags[1]), 304, "", "", both)
	says("in another order", poll("example rwnd-fair", tags[1]+","+tags[0]), 304, "", "", both)
	says("it lost the first", poll("example", tags[1]), 200, "rwnd-fair", tags[0], both)
	says("another bundle", poll(both, tags[0]+`, W/"`+strings.Repeat("0a", 32)+`"`), 200, "example", tags[1], both)
	expect(t, "a rejection", x.do(ap, "POST", "/v1/aps/a/status", strings.Replace(statusBody(strings.Trim(tags[1], `"`),
		"rejected", "no_memory"), "{", `{"policy": "example", `, 1)), 204)
	says("it rejected the second", poll("rwnd-fair", tags[0]), 304, "", "", both)
	only := x.champions("rwnd-fair")
	says("one is withdrawn", poll(both, only[0]+", "+tags[1]), 304, "", "", "rwnd-fair")
	x.champions()
	says("nothing is desired", poll("rwnd-fair", only[0]), 204, "", "", "")
}

// An exporter from before there were several policies sends and gets what it always did.
func TestPollOfAnOlderExporter(t *testing.T) {
	x := start(t, config.Limits{})
	ap := x.client("a", "ap")
	tags := x.champions("rwnd-fair", "example")
	first := x.do(ap, "GET", "/v1/aps/a/bundle", "")
	expect(t, "nothing in force", first, 200)
	again := x.do(ap, "GET", "/v1/aps/a/bundle", "", "If-None-Match", tags[0])
	expect(t, "rwnd-fair in force", again, 304)
	for _, h := range []http.Header{first.Header, again.Header} {
		if len(h["Oal-Policy"])+len(h["Oal-Policies"]) != 0 {
			t.Errorf("headers %v", h)
		}
	}
	if first.Header.Get("ETag") != tags[0] {
		t.Errorf("headers %v", first.Header)
	}
	x.champions("example")
	expect(t, "nothing of rwnd-fair", x.do(ap, "GET", "/v1/aps/a/bundle", "", "If-None-Match", tags[0]), 204)
	expect(t, "two tags", x.do(ap, "GET", "/v1/aps/a/bundle", "", "If-None-Match", tags[0]+", "+tags[1]), 400)
}

func TestAPThatHasOneTooManyIsToldAtOnce(t *testing.T) {
	x := start(t, config.Limits{})
	tags := x.champions("example")
	ap, began := x.client("a", "ap"), time.Now().UnixMicro()
	answer := make(chan *http.Response, 1)
	go func() {
		response, err := x.try(ap, "GET", "/v1/aps/a/bundle", "", "OAL-Policies", "example", "If-None-Match", tags[0],
			"Prefer", "wait=60")
		if err != nil {
			t.Error(err)
		}
		answer <- response
	}()
	until(t, func() bool { v, _ := x.fleet.Get("a"); return v.LastSeenUS >= began })
	x.champions()
	response := <-answer
	expect(t, "waiting", response, 204)
	if list := response.Header["Oal-Policies"]; len(list) != 1 || list[0] != "" {
		t.Errorf("headers %v", response.Header)
	}
	expect(t, "the next poll", x.do(ap, "GET", "/v1/aps/a/bundle", "", "OAL-Policies", "example",
		"If-None-Match", tags[0], "Prefer", "wait=60"), 204)
}

func TestBadPolicies(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	ap := x.client("a", "ap")
	tag := func(n int) string { return fmt.Sprintf(`"%064x"`, n) }
	for _, c := range [][2]string{{"rwnd-fair", ""}, {"", tag(1)}, {"rwnd-fair", tag(1) + ", " + tag(2)},
		{"rwnd-fair example", tag(1)}, {"example example", tag(1) + ", " + tag(2)},
		{"rwnd-fair rwnd-fair", tag(1) + ", " + tag(2)}, {"Example", tag(1)}, {"a/b", tag(1)},
		{strings.Repeat("a", 32), tag(1)}, {"example", "x"}, {"example", tag(1) + ","},
		{"a b c d e", strings.Join([]string{tag(1), tag(2), tag(3), tag(4), tag(5)}, ", ")}} {
		expect(t, fmt.Sprint(c), x.do(ap, "GET", "/v1/aps/a/bundle", "", "OAL-Policies", c[0],
			"If-None-Match", c[1]), 400)
	}
	expect(t, "a report", x.do(ap, "POST", "/v1/aps/a/status", strings.Replace(statusBody(strings.Repeat("0a", 32),
		"rejected", "replayed"), "{", `{"policy": "a b", `, 1)), 400)
	if x.fleet.Known() != 0 {
		t.Error("a refused request has made an AP")
	}
}

func TestPoliciesOfAnAPAreThoseOfTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../../schema/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Max       int `yaml:"max_policies"`
		MaxKilled int `yaml:"max_killed_policies"`
	}
	if err := yaml.Unmarshal(text, &settings); err != nil || settings.Max != fleet.MaxPolicies ||
		settings.MaxKilled != fleet.MaxKilled {
		t.Errorf("%+v, %v; here it is %d and %d", settings, err, fleet.MaxPolicies, fleet.MaxKilled)
	}
}
