package rls_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// load returns the rules of a file.
func load(t testing.TB, text string) *rls.Config {
	t.Helper()
	c, _, _, faults := rls.Load([]rulefile.File{{Name: "a.yaml", Text: []byte(text)}}, false)
	require.NoError(t, faults.Err())
	return c
}

// request returns a request with a descriptor for each of descriptors, which has entries such as "key=value",
// separated by spaces.
func request(domain string, descriptors ...string) *rls.Request {
	r := &rls.Request{Domain: []byte(domain)}
	for _, text := range descriptors {
		var d rls.Descriptor
		for entry := range strings.FieldsSeq(text) {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, rls.Entry{Key: []byte(key), Value: []byte(value)})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

const shop = `domain: rl
descriptors:
- {key: foo, rate_limit: {unit: minute, requests_per_unit: 2}}
- key: path
  descriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 5}}]
- {key: user, value: gold, rate_limit: {unit: day, requests_per_unit: 9}}
- {key: route, value: api/*, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: tier, value: "g*", rate_limit: {unit: minute, requests_per_unit: 4}}
- {key: free, rate_limit: {unlimited: true}}
- {key: none, rate_limit: {unit: minute, requests_per_unit: 0}}
- {key: "s*r", rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: a_b, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: test, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1, name: t}}
`

// TestNames: the name of a policy depends on its path alone, and is valid.
func TestNames(t *testing.T) {
	for want, path := range map[string][]string{
		"rls.rl.foo":                                   {"rl", "foo"},
		"rls.rl.path.user":                             {"rl", "path", "user"},
		"rls.rl.user_gold":                             {"rl", "user_gold"},
		"rls.rl.route_api__-deee226d":                  {"rl", "route_api/*"},
		"rls.my_domain.a-864e2577":                     {"my.domain", "a"},
		"rls.a.b_c-91949026":                           {"a", "b.c"},
		"rls.a.b_-6d9b9d7a":                            {"a", "bü"},
		"rls." + strings.Repeat("x", 60):               {strings.Repeat("x", 60)},
		"rls." + strings.Repeat("x", 51) + "-42125e0e": {strings.Repeat("x", 61)},
	} {
		is := rls.NameOf(path[0], path[1:]...)
		require.Equal(t, want, is)
		require.NoError(t, policy.CheckName([]byte(is)))
	}
}

// TestKeys: the policy and the key of a descriptor.
func TestKeys(t *testing.T) {
	c := load(t, shop)
	long := strings.Repeat("x", 2000)
	for entries, want := range map[string]string{
		"foo=x":               "rls.rl.foo x",
		"foo":                 "rls.rl.foo ",
		"foo=a%|#b":           "rls.rl.foo a%25%7C%23b",
		"path=/cart user=ada": "rls.rl.path.user /cart|ada",
		"user=gold":           "rls.rl.user_gold all",
		"route=api/x":         "rls.rl.route_api__-deee226d all",
		"tier=green":          "rls.rl.tier_g_-bcb45c8a green",
		"server=1":            "",
		"s*r=x":               "rls.rl.s_r-1a08dd9f s*r_x", // the key of the step itself
		"star=r":              "rls.rl.s_r-1a08dd9f star_r",
		"a_b=x":               "rls.rl.a_b x",
		"a=b":                 "rls.rl.a_b %_",
		"a_b=a_b":             "rls.rl.a_b a_b",
		"free=x":              "rls.rl.free x",
		"user_gold=x":         "rls.rl.user_gold gold_x", // the text of an exact step as a key
		"foo=" + long:         "rls.rl.foo " + long[:960] + "%~5c0e0ea421571c300b5df6aec0a118b5",
		"user=silver":         "",
		"path=/cart":          "",
		"foo=x foo=x":         "",
		"":                    "",
	} {
		var p rls.Plan
		require.NoError(t, c.Plan(request("rl", entries), &p))
		is := ""
		for i := range p.Charges {
			is += string(p.Charges[i].Policy) + " " + string(p.Charges[i].Key)
		}
		require.Equal(t, want, is, entries)
	}
}

// TestKeysOfLimitsOfRequests: a limit that the request brings with it has the policy of the rule, and a key by value.
func TestKeysOfLimitsOfRequests(t *testing.T) {
	c := load(t, shop)
	for _, test := range []struct {
		entries string
		unit    rulefile.Unit
		want    string
	}{
		{"foo=x", rulefile.Minute, "rls.rl.foo x"},
		{"foo=x", rulefile.Hour, "rls.rl.foo x%@hour"},
		{"route=api/x", rulefile.Minute, "rls.rl.route_api__-deee226d api/x"},
		{"user=gold", rulefile.Week, "rls.rl.user_gold all%@week"},
		{"free=x", rulefile.Second, "rls.rl.free x%@second"},
		{"other=x y=1|2", rulefile.Day, "rls.rl.request other_x|y_1%7C2%@day"},
		{"path=/cart", rulefile.Day, "rls.rl.request path_/cart%@day"},
		{"", rulefile.Year, "rls.rl.request all%@year"},
	} {
		r := request("rl", test.entries)
		r.Descriptors[0].HasOwn, r.Descriptors[0].Own = true, rls.Own{Requests: 7, Unit: int32(test.unit)}
		var p rls.Plan
		require.NoError(t, c.Plan(r, &p))
		require.Len(t, p.Charges, 1)
		is := p.Charges[0]
		require.Equal(t, test.want, string(is.Policy)+" "+string(is.Key))
		require.Equal(t, rls.Window{Most: 7, Seconds: test.unit.Seconds()}, is.Own)
	}
	r := request("nowhere", "foo=x")
	r.Descriptors[0].HasOwn = true // its unit does not matter there
	var p rls.Plan
	require.NoError(t, c.Plan(r, &p))
	require.Empty(t, p.Charges)
}

// TestSharedKeyIsNoValue: the value "all" of a shared step with a limit of the request has another key than the
// step.
func TestSharedKeyIsNoValue(t *testing.T) {
	c := load(t, "domain: d\ndescriptors: [{key: k, value: '*', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 1}}]")
	r := request("d", "k=all", "k=all", "k=%61ll")
	for i := range r.Descriptors[1:] {
		r.Descriptors[i+1].HasOwn, r.Descriptors[i+1].Own.Unit = true, int32(rulefile.Day)
		r.Descriptors[i+1].Own.Requests = 1
	}
	var p rls.Plan
	require.NoError(t, c.Plan(r, &p))
	require.Equal(t, "all %61ll %2561ll", fmt.Sprintf("%s %s %s", p.Charges[0].Key, p.Charges[1].Key, p.Charges[2].Key))
}

// TestBadRequests: requests that have no answer.
func TestBadRequests(t *testing.T) {
	c := load(t, shop)
	many := func(n int) []string { return make([]string, n) }
	with := func(change func(*rls.Request)) *rls.Request {
		r := request("rl", "foo=x")
		change(r)
		return r
	}
	for _, test := range []struct {
		r       *rls.Request
		err     error
		invalid bool
	}{
		{request("", "foo=x"), rls.ErrNoDomain, false},
		{request("rl"), rls.ErrNoDescriptors, false},
		{request("rl", many(101)...), rls.ErrDescriptors, true},
		{request("rl", many(100)...), nil, false},
		{request("rl", strings.Repeat("a ", 33)), rls.ErrEntries, true},
		{request("rl", strings.Repeat("a ", 32)), nil, false},
		{with(func(r *rls.Request) { r.Hits = 1 << 63 }), rls.ErrHits, true},
		{with(func(r *rls.Request) { r.Hits = 1<<63 - 1 }), nil, false},
		{with(func(r *rls.Request) { r.Descriptors[0].HasHits, r.Descriptors[0].Hits = true, math.MaxUint64 }), rls.ErrHits, true},
		{with(func(r *rls.Request) { r.Descriptors[0].Hits = math.MaxUint64 }), nil, false},
		{with(func(r *rls.Request) { r.Descriptors[0].HasOwn = true }), rls.ErrUnit, true},
		{with(func(r *rls.Request) { r.Descriptors[0].HasOwn, r.Descriptors[0].Own.Unit = true, 8 }), rls.ErrUnit, true},
		{with(func(r *rls.Request) { r.Descriptors[0].HasOwn, r.Descriptors[0].Own.Unit = true, -1 }), rls.ErrUnit, true},
		{with(func(r *rls.Request) { r.Descriptors[0].HasOwn, r.Descriptors[0].Own.Unit = true, 257 }), rls.ErrUnit, true},
		{with(func(r *rls.Request) { r.Descriptors[0].HasOwn, r.Descriptors[0].Own.Unit = true, 7 }), nil, false},
	} {
		var p rls.Plan
		err := c.Plan(test.r, &p)
		require.ErrorIs(t, err, test.err)
		require.Equal(t, test.invalid, rls.Invalid(err), "%v", err)
	}
	var p rls.Plan
	var unloaded *rls.Config
	require.ErrorIs(t, unloaded.Plan(request("rl", "foo=x"), &p), rls.ErrNoConfig)
}

// TestExample is the example of the specification.
func TestExample(t *testing.T) {
	s := open(t, load(t, shop), rls.Options{})
	s.clock.Set(limit.Instant(1_800_000_040e9))
	for _, want := range []rls.Status{
		{Code: rls.OK, Limited: true, Requests: 2, Unit: rulefile.Minute, Remaining: 1, Reset: 20},
		{Code: rls.OK, Limited: true, Requests: 2, Unit: rulefile.Minute, Remaining: 0, Reset: 20},
		{Code: rls.OverLimit, Limited: true, Requests: 2, Unit: rulefile.Minute, Remaining: 0, Reset: 20},
	} {
		a, err := s.call(request("rl", "foo=x"))
		require.NoError(t, err)
		require.Equal(t, &rls.Answer{Overall: want.Code, Statuses: []rls.Status{want}, Header: -1}, a)
	}
}

// TestWhatAppliesToKeys: blocks, exemptions, overrides and boosts apply to the keys of calls.
func TestWhatAppliesToKeys(t *testing.T) {
	entry := func(kind policy.Kind, name, pattern string, change func(*policy.Entry)) *policy.Entry {
		e := &policy.Entry{Kind: kind, Policy: name, Pattern: pattern, Until: limit.MaxInstant}
		if change != nil {
			change(e)
		}
		return e
	}
	s := open(t, load(t, shop), rls.Options{},
		entry(policy.Block, "rls.rl.foo", "acme", func(e *policy.Entry) { e.Until = start.Add(time.Hour) }),
		entry(policy.Block, "rls.rl.foo", "gone", nil),
		entry(policy.Exempt, "rls.rl.foo", "free", nil),
		entry(policy.Override, "rls.rl.foo", "vip", func(e *policy.Entry) { e.Limits = policy.FixedWindow(1000, 3600) }),
		entry(policy.Boost, "rls.rl.foo", "more", func(e *policy.Entry) { e.Factor = 2000 }),
		entry(policy.Override, "rls.rl.free", "bad", func(e *policy.Entry) { e.Limits = policy.FixedWindow(1, 60) }),
		entry(policy.Block, "rls.rl.free", "worse", nil),
		entry(policy.Exempt, "rls.rl.none", "free", nil),
		entry(policy.Override, "rls.rl.none", "some", func(e *policy.Entry) { e.Limits = policy.FixedWindow(3, 60) }),
		entry(policy.Block, "rls.rl.test", "acme", nil),
	)
	const year = 365 * 86400
	left := int64(60 - start/1e9%60)
	foo := func(code rls.Code, most, remaining uint32, reset int64) rls.Status {
		return rls.Status{Code: code, Limited: true, Requests: most, Unit: rulefile.Minute, Remaining: remaining, Reset: reset}
	}
	for entries, want := range map[string][]rls.Status{
		"foo=acme":   {foo(rls.OverLimit, 2, 0, 3600)},
		"foo=gone":   {foo(rls.OverLimit, 2, 0, year)},
		"foo=free":   {foo(rls.OK, 2, 1, left), foo(rls.OK, 2, 0, left), foo(rls.OK, 2, 0, left)},
		"foo=vip":    {foo(rls.OK, 1000, 999, 3600-int64(start/1e9%3600))},
		"foo=more":   {foo(rls.OK, 4, 3, left)},
		"free=x":     {{Code: rls.OK, Remaining: math.MaxUint32}},
		"free=bad":   {{Code: rls.OK, Limited: true, Requests: 1, Reset: left}, {Code: rls.OverLimit, Limited: true, Requests: 1, Reset: left}},
		"free=worse": {{Code: rls.OverLimit, Limited: true, Requests: math.MaxUint32, Reset: year}},
		"none=x":     {foo(rls.OverLimit, 0, 0, left)},
		"none=free":  {foo(rls.OK, 0, 0, left)},
		"none=some":  {foo(rls.OK, 3, 2, left)},
		"test=acme":  {{Code: rls.OverLimit, Limited: true, Requests: 1, Unit: rulefile.Minute, Name: "t", Reset: year}},
		"test=x":     {{Code: rls.OK, Limited: true, Requests: 1, Unit: rulefile.Minute, Name: "t", Reset: left}, {Code: rls.OK, Limited: true, Requests: 1, Unit: rulefile.Minute, Name: "t", Reset: left}},
		"other=x":    {{Code: rls.OK}},
	} {
		for i := range want {
			a, err := s.call(request("rl", entries))
			require.NoError(t, err)
			require.Equal(t, want[i:i+1], a.Statuses, "%s, call %d", entries, i)
		}
	}
}

// TestLimitsOfRequestsAreNotThoseOfTheRule: neither SHADOW nor the limit of the rule matters for such a limit, but a
// block and an override do.
func TestLimitsOfRequestsAreNotThoseOfTheRule(t *testing.T) {
	s := open(t, load(t, shop), rls.Options{},
		&policy.Entry{Kind: policy.Override, Policy: "rls.rl.test", Pattern: "vip", Limits: policy.FixedWindow(50, 60), Until: limit.MaxInstant},
		&policy.Entry{Kind: policy.Exempt, Policy: "rls.rl.test", Pattern: "free", Until: limit.MaxInstant},
	)
	call := func(entries string, requests uint32) rls.Status {
		r := request("rl", entries)
		r.Descriptors[0].HasOwn, r.Descriptors[0].Own = true, rls.Own{Requests: requests, Unit: int32(rulefile.Minute)}
		a, err := s.call(r)
		require.NoError(t, err)
		return a.Statuses[0]
	}
	require.Equal(t, rls.OK, call("test=x", 2).Code)
	require.Equal(t, rls.OK, call("test=x", 2).Code)
	require.Equal(t, rls.OverLimit, call("test=x", 2).Code)
	require.Equal(t, uint32(50), call("test=vip", 0).Requests)
	require.Equal(t, rls.OverLimit, call("test=none", 0).Code)
	require.Equal(t, rls.OK, call("test=free", 0).Code)
	require.Equal(t, rls.OK, call("nothing=x", 1).Code)
	require.Equal(t, rls.OverLimit, call("nothing=x", 1).Code)
}

// TestCallsAllocateNothing: neither planning a request nor its answer allocates.
func TestCallsAllocateNothing(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector allocates")
	}
	s := open(t, load(t, shop), rls.Options{Headers: true})
	r := request("rl", "foo=x", "path=/cart user=ada", "route=api/x", "none=x", "free=x", "other=x", "tier=green")
	r.Descriptors[0].HasOwn, r.Descriptors[0].Own = true, rls.Own{Requests: 5, Unit: int32(rulefile.Hour)}
	call := func() {
		if _, err := s.call(r); err != nil {
			panic(err)
		}
	}
	for range 10 {
		call()
	}
	require.Zero(t, testing.AllocsPerRun(100, call))
}
