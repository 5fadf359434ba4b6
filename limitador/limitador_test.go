package limitador_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// load returns the limits of a file.
func load(t testing.TB, text string) *limitador.Config {
	t.Helper()
	c, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(text)})
	require.NoError(t, faults.Err())
	return c
}

// request returns a request about one descriptor, of keys and values.
func request(namespace string, delta uint64, entries ...string) *limitador.Request {
	var d rls.Descriptor
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, rls.Entry{Key: []byte(entries[i]), Value: []byte(entries[i+1])})
	}
	return &limitador.Request{Namespace: []byte(namespace), Descriptors: []rls.Descriptor{d}, Delta: delta}
}

const shop = `---
- namespace: test_namespace
  max_value: 1000000
  seconds: 60
  conditions:
  variables:
- &a
  namespace: shop
  name: per user
  id: 4711-a
  max_value: 5
  seconds: 60
  conditions:
    - "descriptors[0]['req.method'] == 'POST'"
    - "descriptors[0]['req.method'] == 'POST'"
  variables:
    - descriptors[0]['req.method']
    - descriptors[0].user_id
- {<<: *a, name: total, conditions: [], variables: []}
- {namespace: shop, name: rates, max_value: 0, seconds: 1, conditions: [], variables: ["descriptors[0].user_id"]}
- {namespace: shop, name: rates, max_value: 100, seconds: 3600, conditions: [], variables: ["descriptors[0].user_id"]}
- {namespace: shop, name: late, max_value: 7, seconds: 3600, conditions: [], variables: ["descriptors[0].user_id"]}
`

// TestLimits: the limits of a file in their order, with what their policies are.
func TestLimits(t *testing.T) {
	c, remarks, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(shop)})
	require.NoError(t, faults.Err())
	require.EqualError(t, remarks.Err(), "l.yaml:22: the limit has no effect: line 21 has the same namespace, seconds, conditions and variables")
	var got []string
	for _, is := range c.Limits() {
		e := is.Entry()
		require.NoError(t, e.Check())
		require.True(t, e.File)
		require.False(t, e.Count)
		require.Same(t, is, c.Limit(is.Policy))
		got = append(got, fmt.Sprintf("%s:%d %s %v %v %v; %s", is.File, is.Line, is.Policy, is.Limits.Text, is.Conditions, is.Variables, e.Comment))
	}
	require.Equal(t, []string{
		"l.yaml:2 lim.test_namespace.0315a641283ee7aa [SW 1000000 60 FIXED ANCHOR FIRST] [] []; namespace test_namespace",
		"l.yaml:7 lim.shop.per_user-6812bf57 [SW 5 60 FIXED ANCHOR FIRST] [descriptors[0]['req.method'] == 'POST'] [descriptors[0]['req.method'] descriptors[0].user_id]; name per user, id 4711-a, namespace shop",
		"l.yaml:19 lim.shop.total [SW 5 60 FIXED ANCHOR FIRST] [] []; name total, id 4711-a, namespace shop",
		"l.yaml:20 lim.shop.rates-a1794d69a522e38e [SW 0 1 FIXED ANCHOR FIRST] [] [descriptors[0].user_id]; name rates, namespace shop",
		"l.yaml:21 lim.shop.rates-a759a2d0fbd070ee [SW 100 3600 FIXED ANCHOR FIRST] [] [descriptors[0].user_id]; name rates, namespace shop",
	}, got)
	require.Len(t, c.Namespace([]byte("shop")), 4)
	require.Nil(t, c.Namespace([]byte("none")))
	require.Nil(t, c.Limit("lim.shop.none"))
	require.Positive(t, c.Bytes())

	var none *limitador.Config
	require.Nil(t, none.Namespace([]byte("shop")))
	require.Nil(t, none.Limits())
	require.Nil(t, none.Limit("lim.shop.total"))
	require.Zero(t, none.Bytes())
	var p limitador.Plan
	require.NoError(t, none.Plan(request("shop", 1), &p))
	require.Empty(t, p.Calls)
}

// TestNames: a name depends on the limit, and on whether others of the namespace have the same name.
func TestNames(t *testing.T) {
	of := func(fields ...string) (names []string) {
		var text strings.Builder
		for _, f := range fields {
			text.WriteString("- {max_value: 1, conditions: [], " + f + "}\n")
		}
		for _, is := range load(t, text.String()).Limits() {
			names = append(names, is.Policy)
		}
		return names
	}
	const a, b = "namespace: ns, name: a, seconds: 1, variables: ['1', '2']", "namespace: ns, name: a, seconds: 2, variables: []"
	require.Equal(t, []string{"lim.ns.a"}, of(a))
	both := of(a, b)
	require.Regexp(t, `^lim\.ns\.a-[0-9a-f]{16}$`, both[0])
	require.Equal(t, []string{both[1], both[0]}, of(b, strings.Replace(a, "'1', '2'", "'2', '1'", 1)), "the order of limits and of variables does not matter")
	require.Equal(t, []string{"lim.ns.a", "lim.other.a"}, of(a, strings.Replace(b, "ns", "other", 1)))
	require.Regexp(t, `^lim\.ns\.[0-9a-f]{16}$`, of("namespace: ns, name: '', seconds: 1, variables: []")[0])
	long := of("namespace: ns, name: " + strings.Repeat("ä", 200) + ", seconds: 1, variables: []")
	require.NoError(t, policy.CheckName([]byte(long[0])))
	require.Regexp(t, `-[0-9a-f]{8}$`, long[0])
}

// TestFaults: files that are refused, with all lines.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":         "l.yaml:1: the text is empty",
		"a: b":     "l.yaml:1: the text must be a list, not a mapping",
		"- a\n- 5": "l.yaml:1: a limit must be a mapping, not the text \"a\"\nl.yaml:2: a limit must be a mapping, not \"5\"",
		"- {}":     "l.yaml:1: namespace is missing\nl.yaml:1: seconds is missing\nl.yaml:1: conditions is missing\nl.yaml:1: variables is missing",
		`
- namespace: ""
  max: 5
  max_value: -1
  name: [a]
  seconds: 0
  conditions: []
  variables: []
- {namespace: a, namespace: b, max_value: 1.5, seconds: 60s, conditions: x, variables: {}}
---
- {}`: `
l.yaml:3: unknown field "max"
l.yaml:4: max_value must be from 0 to 9223372036854775807, not "-1"
l.yaml:5: name must be text, not a list
l.yaml:9: "namespace" is there twice: its first is in line 9
l.yaml:9: max_value must be a whole number, not "1.5"
l.yaml:9: seconds must be a whole number, not the text "60s"
l.yaml:9: conditions must be a list, not the text "x"
l.yaml:9: variables must be a list, not a mapping
l.yaml:10: a limits file has one document`,
		`
- namespace: ""
  max_value: 1
  seconds: 0
  conditions:
    - "descriptors[0].x == 'a'"
    - "int(descriptors[0].x) > 5"
    - true
    - "req.method == 'GET'"
  variables:
    - descriptors[0]
    - user_id
    - descriptors[0].x
- {namespace: a, max_value: 1, seconds: 2305843010, conditions: [5], variables: []}`: `
l.yaml:2: namespace is empty
l.yaml:2: seconds must be from 1 to 2305843009, not 0
l.yaml:7: "int(descriptors[0].x) > 5": the function int is not supported
l.yaml:9: "req.method == 'GET'": the name req is not known: there are descriptors and, in conditions, limit
l.yaml:11: "descriptors[0]": a variable must not be a descriptor
l.yaml:12: "user_id": the name user_id is not known: there are descriptors and, in conditions, limit
l.yaml:14: "5": a condition must be true or false, not a number
l.yaml:14: seconds must be from 1 to 2305843009, not 2305843010`,
	} {
		c, remarks, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(text)})
		require.Nil(t, c)
		require.Nil(t, remarks)
		require.EqualError(t, faults, strings.TrimSpace(want))
	}
}

// TestMaxValue: a limit without max_value is 0, as in Limitador, with a remark.
func TestMaxValue(t *testing.T) {
	c, remarks, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte("- {namespace: ns, seconds: 1, conditions: [true], variables: [1]}")})
	require.NoError(t, faults.Err())
	require.EqualError(t, remarks, "l.yaml:1: max_value is missing: the limit is 0")
	require.Equal(t, []string{"SW 0 1 FIXED ANCHOR FIRST"}, c.Limits()[0].Limits.Text)
}

// TestEqualNames: two limits whose policies have the same name are a fault.
func TestEqualNames(t *testing.T) {
	name := limitador.PolicyOf("ns", "a.b", "")
	_, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(
		"- {namespace: ns, name: a.b, max_value: 1, seconds: 1, conditions: [], variables: []}\n" +
			"- {namespace: ns, name: " + strings.TrimPrefix(name, "lim.ns.") + ", max_value: 1, seconds: 2, conditions: [], variables: []}")})
	require.EqualError(t, faults, "l.yaml:2: the policy has the name of that in line 1: "+name)
}

// limits returns a file with n limits of 1 for a day, which all apply to a request with the keys a and b.
func limits(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "- {namespace: ns, name: l%d, max_value: 1, seconds: %d, conditions: [], variables: ['descriptors[0].b', 'descriptors[0].a']}\n", i, 86400+i)
	}
	return text.String()
}

// TestBounds: the number of limits, of expressions, of faults and of remarks is bounded.
func TestBounds(t *testing.T) {
	effort.Alone(t)
	begun := effort.CPU()
	_, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(limits(limitador.MaxLimits + 1))})
	require.EqualError(t, faults, "l.yaml:100001: there are more than 100000 limits")
	require.Less(t, effort.CPU()-begun, 30*time.Second)

	var many strings.Builder
	for i := range limitador.MaxExpressions + 1 {
		fmt.Fprintf(&many, "'%d',", i)
	}
	_, _, faults = limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte("- {namespace: ns, max_value: 1, seconds: 1, conditions: [], variables: [" + strings.ReplaceAll(many.String(), "'", "\"") + "]}")})
	require.EqualError(t, faults, "l.yaml:1: a limit has at most 64 variables")

	_, _, faults = limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(strings.Repeat("- {}\n", 500))})
	require.Len(t, faults, strict.MaxFaults)
	_, remarks, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(strings.Repeat(limits(1), 500))})
	require.NoError(t, faults.Err())
	require.Len(t, remarks, strict.MaxFaults)
}

// TestPlan: the limits that apply to a request, with their keys.
func TestPlan(t *testing.T) {
	c := load(t, shop)
	of := func(r *limitador.Request) (calls []string) {
		var p limitador.Plan
		require.NoError(t, c.Plan(r, &p))
		require.Equal(t, int64(r.Delta), p.Delta)
		for _, call := range p.Calls {
			require.Equal(t, call.Limit.Policy, string(call.Policy))
			calls = append(calls, fmt.Sprintf("%s %s", call.Policy, call.Key))
		}
		return calls
	}
	require.Equal(t, []string{"lim.shop.total all"}, of(&limitador.Request{Namespace: []byte("shop"), Delta: 3}))
	require.Equal(t, []string{"lim.shop.total all"}, of(request("shop", 1, "req.method", "POST")), "a variable does not exist")
	require.Equal(t, []string{"lim.shop.total all", "lim.shop.rates-a1794d69a522e38e a%7Cb%25%23", "lim.shop.rates-a759a2d0fbd070ee a%7Cb%25%23"}, of(request("shop", 1, "user_id", "a|b%#")))
	require.Equal(t, []string{"lim.shop.per_user-6812bf57 ada|POST", "lim.shop.total all", "lim.shop.rates-a1794d69a522e38e ada", "lim.shop.rates-a759a2d0fbd070ee ada"}, of(request("shop", 1, "user_id", "ada", "req.method", "POST")), "keys have the order of the texts of variables")
	require.Equal(t, []string{"lim.shop.total all", "lim.shop.rates-a1794d69a522e38e ", "lim.shop.rates-a759a2d0fbd070ee "}, of(request("shop", 1, "user_id", "")))
	long := strings.Fields(of(request("shop", 1, "user_id", strings.Repeat("x", 2000)))[1])
	require.Len(t, long[1], 960+2+32)
	require.Empty(t, of(request("none", 1)))
	require.Empty(t, of(request("", 1)))
}

// TestRequestsThatAreRefused: requests beyond the bounds.
func TestRequestsThatAreRefused(t *testing.T) {
	c := load(t, limits(limitador.MaxCalls+1))
	var p limitador.Plan
	require.ErrorIs(t, c.Plan(request("ns", 1, "a", "x", "b", "y"), &p), limitador.ErrCalls)
	require.NoError(t, c.Plan(request("ns", 1, "a", "x"), &p))
	require.Empty(t, p.Calls)
	require.ErrorIs(t, c.Plan(request("ns", math.MaxInt64+1), &p), rls.ErrHits)
	require.ErrorIs(t, c.Plan(&limitador.Request{Descriptors: make([]rls.Descriptor, rls.MaxDescriptors+1)}, &p), rls.ErrDescriptors)
	require.ErrorIs(t, c.Plan(request("ns", 1, make([]string, 2*rls.MaxEntries+2)...), &p), rls.ErrEntries)
	require.NoError(t, load(t, limits(limitador.MaxCalls)).Plan(request("ns", 1, "a", "x", "b", "y"), &p))
	require.Len(t, p.Calls, limitador.MaxCalls)
}

// TestAllOrNothing: a limit that is over keeps the others from being charged, and a report charges all.
func TestAllOrNothing(t *testing.T) {
	s := open(t, load(t, `
- {namespace: ns, name: user, max_value: 2, seconds: 60, conditions: [], variables: ["descriptors[0].user"]}
- {namespace: ns, name: "the \"total\"\r\n", max_value: 3, seconds: 3600, conditions: [], variables: []}
- {namespace: ns, name: none, max_value: 0, seconds: 1, conditions: ["descriptors[0].user == 'eve'"], variables: []}`))
	ada, bob := request("ns", 1, "user", "ada"), request("ns", 1, "user", "bob")
	a := s.call(t, ada, ratelimit.Whole)
	require.False(t, a.Limited)
	require.Nil(t, a.Limit)
	require.Equal(t, `2, 2;w=60;name="user", 3;w=3600;name="the 'total'  "`, string(a.Limits))
	require.Equal(t, []int64{1, 60}, []int64{a.Remaining, a.Reset})
	s.clock.Advance(1500 * time.Millisecond)
	require.False(t, s.call(t, ada, ratelimit.Whole).Limited)
	require.Equal(t, int64(59), s.answer.Reset, "seconds are rounded up")
	a = s.call(t, ada, ratelimit.Whole)
	require.True(t, a.Limited)
	require.Equal(t, "user", *a.Limit.Name)
	require.Equal(t, `2, 2;w=60;name="user", 3;w=3600;name="the 'total'  "`, string(a.Limits))
	for range 2 {
		require.False(t, s.call(t, bob, ratelimit.Peek).Limited)
		require.False(t, s.answer.HasHeaders)
	}
	require.False(t, s.call(t, bob, ratelimit.Whole).Limited, "the total was not charged for the denied call")
	require.True(t, s.call(t, bob, ratelimit.Whole).Limited)
	require.Equal(t, `the "total"`+"\r\n", *s.answer.Limit.Name)

	eve := request("ns", 2, "user", "eve")
	s.call(t, eve, ratelimit.Force)
	s.clock.Advance(3600 * time.Second)
	s.call(t, eve, ratelimit.Force)
	a = s.call(t, eve, ratelimit.Whole)
	require.True(t, a.Limited)
	require.Equal(t, "the \"total\"\r\n", *a.Limit.Name, "the first without variables")
	require.True(t, s.decisions[0].Denied, "a limit of 0 does not keep the others from being charged")
	require.True(t, s.decisions[2].Denied)
}

// TestOperators: blocks, exemptions and overrides hold for the policies of limits.
func TestOperators(t *testing.T) {
	c := load(t, `
- {namespace: ns, name: user, max_value: 2, seconds: 60, conditions: [], variables: ["descriptors[0].user"]}
- {namespace: ns, name: total, max_value: 3, seconds: 3600, conditions: [], variables: []}`)
	limits, err := policy.ParseLimits([][]byte{[]byte("SW"), []byte("9"), []byte("60"), []byte("FIXED")}, false, policy.Bounds{})
	require.Empty(t, err)
	s := open(
		t, c,
		&policy.Entry{Kind: policy.Block, Policy: "lim.ns.user", Pattern: "ada", Until: start.Add(90 * time.Second)},
		&policy.Entry{Kind: policy.Block, Policy: "lim.ns.user", Pattern: "eve", Until: limit.MaxInstant},
		&policy.Entry{Kind: policy.Override, Policy: "lim.ns.user", Pattern: "bob", Limits: limits, Until: limit.MaxInstant},
		&policy.Entry{Kind: policy.Exempt, Policy: "lim.ns.user", Pattern: "max", Until: limit.MaxInstant},
	)
	a := s.call(t, request("ns", 1, "user", "ada"), ratelimit.Whole)
	require.True(t, a.Limited)
	require.Equal(t, "user", *a.Limit.Name)
	require.Equal(t, []int64{0, 90}, []int64{a.Remaining, a.Reset})
	require.Equal(t, `2, 2;w=60;name="user"`, string(a.Limits), "the limits of the others were not tried")
	require.Equal(t, int64(365*86400), s.call(t, request("ns", 1, "user", "eve"), ratelimit.Whole).Reset)
	a = s.call(t, request("ns", 1, "user", "bob"), ratelimit.Whole)
	require.Equal(t, `3, 3;w=3600;name="total", 9;w=60;name="user"`, string(a.Limits))
	a = s.call(t, request("ns", 2, "user", "max"), ratelimit.Whole)
	require.False(t, a.Limited)
	a = s.call(t, request("ns", 3, "user", "max"), ratelimit.Whole)
	require.True(t, a.Limited)
	require.Equal(t, "total", *a.Limit.Name)
}

// TestPlanAllocatesNothing: neither a plan nor an answer does, after the first.
func TestPlanAllocatesNothing(t *testing.T) {
	c := load(t, shop)
	r := request("shop", 1, "user_id", "ada", "req.method", "POST")
	var p limitador.Plan
	var a limitador.Answer
	decisions := []limitador.Decision{{Limit: 5, Remaining: 4, Reset: time.Second}, {Limit: 5, Remaining: 3}, {Denied: true}, {Untried: true}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := c.Plan(r, &p); err != nil {
			panic(err)
		}
		p.Answer(decisions, true, &a)
	}))
	require.True(t, a.Limited)
}

// FuzzLoad: no text causes a panic, and the limits of an accepted one are valid policies with different names.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		shop, limits(2), "[", "- &a {x: *a}", "- {namespace: \"\\0\", name: ': ', max_value: 1, seconds: 1, conditions: [\"limit.name == ': '\"], variables: ['1 + 1']}",
	} {
		f.Add([]byte(text))
	}
	r := request("shop", 1, "user_id", "ada", "req.method", "POST")
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, faults := limitador.Load(rulefile.File{Name: "l", Text: text})
		if c == nil {
			require.NotEmpty(t, faults)
			return
		}
		var p limitador.Plan
		names := map[string]bool{}
		for _, is := range c.Limits() {
			require.NoError(t, is.Entry().Check())
			require.False(t, names[is.Policy])
			names[is.Policy] = true
			r.Namespace = []byte(is.Namespace)
			if err := c.Plan(r, &p); err != nil {
				require.ErrorIs(t, err, limitador.ErrCalls)
			}
		}
	})
}
