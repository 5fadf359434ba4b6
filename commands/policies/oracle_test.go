package policies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// override is the limits, or the boost, of a pattern until an instant.
type override struct {
	limits *limits
	factor int64
	until  limit.Instant
}

// believed is the test's model of a policy.
type believed struct {
	limits            *limits
	overrides, boosts map[string]override
}

// at returns the entry of m for a key: the exact one, or that of the longest matching prefix.
func at(m map[string]override, key string, now limit.Instant) (best override, found bool) {
	length := -1
	for pattern, o := range m {
		n := len(pattern)
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		switch {
		case o.until <= now, isPrefix && !strings.HasPrefix(key, prefix), !isPrefix && pattern != key:
			continue
		case !isPrefix:
			n = 1 << 20
		}
		if n > length {
			best, length, found = o, n, true
		}
	}
	return best, found
}

// oracle makes the same calls as RL.USE on one server, and as commands with explicit limits on
// another.
type oracle struct {
	dice
	t          testing.TB
	ours, base *node
	policies   map[string]*believed
	boosts     bool
	seen       map[string]int
}

func newOracle(t testing.TB, seed uint64) *oracle {
	t.Helper()
	return &oracle{
		dice: dice{rand.New(rand.NewPCG(seed, 16))}, t: t, ours: newNode(t), base: newNode(t),
		policies: map[string]*believed{}, seen: map[string]int{},
	}
}

func (o *oracle) now() limit.Instant { return o.ours.Server().Clock.Now() }

// some returns limits that are mostly valid.
func (o *oracle) some(millis bool) *limits {
	l := o.limits(millis)
	if !o.boosts && o.IntN(20) == 0 {
		c := &l.clauses[o.IntN(len(l.clauses))]
		i := pick(o.dice, append(c.units, c.counts...)...)
		if c.words[i] = pick(o.dice, "0", "-1", "x", "9223372036854775807", "COUNTER", "99999999999999999999"); i == 1 && c.words[i] == "0" {
			c.words[i] = "-1" // a limit of 0 is valid in a policy alone
		}
	}
	return l
}

func (o *oracle) name() string { return fmt.Sprintf("p%d", o.IntN(6)) }

func (o *oracle) key() string {
	return pick(o.dice, "a", "ac", "acme", "acme:1", "acme:2", "b", "ac\x00\xff")
}

func (o *oracle) pattern() string {
	return pick(o.dice, "a", "acme", "acme:1", "b", "*", "a*", "ac*", "acme*", "acme:*", "zz*", "ac\x00*")
}

// change makes a random change, which may be refused.
func (o *oracle) change() {
	name := o.name()
	p := o.policies[name]
	if o.boosts && p != nil && o.IntN(2) == 0 {
		o.boost(name, p)
		return
	}
	switch n := o.IntN(11); {
	case n < 3 || p == nil:
		o.set(name, p)
	case n < 6:
		o.override(name, p)
	case n < 7:
		o.delete(name, p)
	case n < 8 && o.IntN(3) == 0:
		require.Equal(o.t, ":1\r\n", o.ours.do("RL.POLICY", "DEL", name))
		delete(o.policies, name)
	case n < 10:
		c := call{policy: name, key: o.key()}
		key := c.stateKey(o.IntN(3))
		require.Equal(o.t, o.base.do("DEL", key), o.ours.do("DEL", key))
	default:
		c := call{policy: name, key: o.key()}
		key, value := c.stateKey(o.IntN(3)), pick(o.dice, "text", fmt.Sprint(int64(o.now())+o.Int64N(1e10)))
		require.Equal(o.t, o.base.do("SET", key, value), o.ours.do("SET", key, value))
	}
}

// set sets a policy, unless its limits are invalid.
func (o *oracle) set(name string, p *believed) {
	l := o.some(o.IntN(3) == 0)
	words := []string{"RL.POLICY", "SET", name}
	if l.millis {
		words = append(words, "MS")
	}
	if !o.accepted(l, o.ours.do(append(append(words, "LIMITS"), l.ofPolicy()...)...)) {
		return
	}
	if p == nil {
		p = &believed{overrides: map[string]override{}, boosts: map[string]override{}}
		o.policies[name] = p
	}
	p.limits = l
}

// bare removes from an error reply the argument and the usage, which differ: times of policies
// have units, and clauses of policies have no quantity.
func bare(reply string) resp.Error {
	return resp.Bare(resp.Error(strings.TrimSuffix(strings.TrimPrefix(reply, "-"), "\r\n")))
}

// accepted reports whether limits were set. They have to be refused if RL.MULTI refuses them.
func (o *oracle) accepted(l *limits, reply string) bool {
	if reply == ok {
		return true
	}
	words := []string{"RL.MULTI", fmt.Sprint(len(l.clauses))}
	for i := range l.clauses {
		words = append(words, fmt.Sprintf("none#%d", i))
	}
	words = append(append(words, l.words()...), "MEMBER", "m", "PEEK")
	if l.millis {
		words = append(words, "MS")
	}
	_, want, is := strings.Cut(reply, ": ")
	require.True(o.t, is, "%q: %s", l.words(), reply)
	if want != "a clause of a policy has no quantity\r\n" {
		refused := o.base.do(words...)
		require.Equal(o.t, bare("-ERR "+want), bare(refused))
	}
	o.seen["refused limits"]++
	return false
}

func (o *oracle) override(name string, p *believed) {
	l, pattern := o.some(p.limits.millis), o.pattern()
	words, until := []string{"RL.OVERRIDE", "SET", name, pattern}, limit.MaxInstant
	if o.IntN(2) == 0 {
		seconds := 1 + o.IntN(30)
		words, until = append(words, "EX", fmt.Sprint(seconds)), o.now().Add(time.Duration(seconds)*time.Second)
	}
	if o.accepted(l, o.ours.do(append(append(words, "LIMITS"), l.ofPolicy()...)...)) {
		p.overrides[pattern] = override{limits: l, until: until}
	}
}

func (o *oracle) delete(name string, p *believed) {
	pattern := o.pattern()
	was, there := p.overrides[pattern]
	there = there && o.now() < was.until
	delete(p.overrides, pattern)
	want := ":0\r\n"
	if there {
		want = ":1\r\n"
	}
	require.Equal(o.t, want, o.ours.do("RL.OVERRIDE", "DEL", name, pattern))
}

func (o *oracle) boost(name string, p *believed) {
	pattern, seconds := o.pattern(), 1+o.IntN(200)
	factor := pick[int64](o.dice, 1, 500, 999, 1000, 1001, 1500, 2000, 3333, 12_345, 1000*1000)
	text := fmt.Sprintf("%d.%03d", factor/1000, factor%1000)
	require.Equal(o.t, ok, o.ours.do("RL.BOOST", name, pattern, text, "EX", fmt.Sprint(seconds)))
	p.boosts[pattern] = override{factor: factor, until: o.now().Add(time.Duration(seconds) * time.Second)}
}

// call makes one call on both servers and compares the bytes of the answers.
func (o *oracle) call() {
	name, key := o.name(), o.key()
	c, p := o.dice.call(name, key), o.policies[name]
	want, kind := "", ""
	l := o.inForce(p, key)
	if p != nil && c.mode != "PARTIAL" && o.IntN(4) == 0 {
		c.quantities = o.quantities(len(l.clauses))
	}
	switch {
	case p == nil:
		want, kind = "-NOPOLICY No such policy '"+name+"'\r\n", "no policy"
	default:
		want, kind = o.expected(&c, l)
	}
	if kind == "" {
		return // no command has the same meaning
	}
	if o.seen[kind]++; c.quantities != nil {
		o.seen["several quantities"]++
	}
	if got := o.ours.do(c.words()...); got != want {
		require.Equal(o.t, want, got, "%q\npolicy %+v", c.words(), o.inForce(p, key))
	}
	if strings.HasPrefix(want, "*5\r\n:1") || strings.HasPrefix(want, "*2\r\n*5\r\n:1") {
		o.seen["denied"]++
	}
	if strings.HasPrefix(want, "-") {
		o.seen[strings.Fields(want)[0]]++
	}
}

// quantities returns a quantity for each of n clauses, or rarely another number of quantities, but at
// least two: one quantity is that of all clauses.
func (o *oracle) quantities(n int) (all []int64) {
	if o.IntN(20) == 0 {
		n = o.IntN(17)
	}
	for range n {
		all = append(all, pick[int64](o.dice, 1, 1, 1, 1, 2, 3, 5, 0, 0, -1, -3, 1000))
	}
	if n < 2 {
		return nil
	}
	return all
}

func (o *oracle) inForce(p *believed, key string) *limits {
	if p == nil {
		return nil
	}
	l := p.limits
	if own, found := at(p.overrides, key, o.now()); found {
		l = own.limits
		o.seen["overridden"]++
	}
	if b, found := at(p.boosts, key, o.now()); found {
		l = l.boosted(b.factor)
		o.seen["boosted"]++
	}
	return l
}

// expected returns the reply of the other server to the same call with explicit limits.
func (o *oracle) expected(c *call, l *limits) (reply, kind string) {
	one := len(l.clauses) == 1
	first := &l.clauses[0]
	if err := refusal(c, l); err != "" {
		kind := err
		if strings.HasSuffix(err, otherNumber) {
			kind = otherNumber
		}
		return "-ERR " + err + "\r\n", kind
	}
	for i := range l.clauses {
		n := c.of(i)
		if l.clauses[i].is("CC") && (n < 0 || c.quantities != nil && n != 1) {
			return "", "" // a CC clause of RL.MULTI takes one place
		}
	}
	switch {
	case c.mode == "" || c.mode == "PEEK", one && c.mode == "WAIT" && !first.is("TB"):
		words, unit := c.multi(l)
		return inUnit(o.base.do(words...), unit), fmt.Sprintf("%d clauses", min(len(l.clauses), 4))
	case !one:
		return "", ""
	}
	words, unit := c.single(l)
	if words == nil {
		return "", ""
	}
	reply = inUnit(o.base.do(words...), unit)
	if c.withDetails && reply[0] == '*' {
		reply = "*2\r\n" + reply + "*1\r\n" + reply
	}
	return reply, first.words[0] + " " + c.mode
}

// refusal returns the error about the number of quantities, or that of the first clause that does not
// support the options.
func refusal(c *call, l *limits) string {
	if c.quantities != nil && len(c.quantities) != len(l.clauses) {
		return fmt.Sprintf("%d quantities for %d clauses: %s", len(c.quantities), len(l.clauses), otherNumber)
	}
	for i := range l.clauses {
		switch cl := &l.clauses[i]; {
		case cl.is("CC") && c.member == "" && (c.quantities == nil || c.of(i) > 0):
			return noMember
		case cl.debt && c.mode == "PARTIAL":
			return noPartial
		}
	}
	return ""
}

const (
	noMember    = "the policy has a CC clause, which needs MEMBER"
	noPartial   = "PARTIAL is not for a policy with DEBT"
	otherNumber = "the limits for this key need one quantity, or one for each clause"
)

// run makes the given number of calls.
func (o *oracle) run(calls int) {
	for range calls {
		if o.IntN(40) == 0 {
			o.change()
		}
		if d := o.pass(); d > 0 {
			for _, n := range []*node{o.ours, o.base} {
				n.Server().Clock.Advance(d)
			}
		}
		o.call()
	}
}

// TestUseIsMultiWithTheNumbersOfThePolicy: random calls of RL.USE have, byte for byte, the
// replies of RL.MULTI, or of the command of a single clause, on the same keys at the same
// instants. Meanwhile policies and overrides change, also to other families.
func TestUseIsMultiWithTheNumbersOfThePolicy(t *testing.T) {
	effort.Alone(t)
	o := newOracle(t, 1)
	o.run(effort.Steps(40_000, 1_000_000))
	t.Log(o.seen)
	for _, kind := range []string{
		"1 clauses", "2 clauses", "3 clauses", "4 clauses", "TB PARTIAL", "TB FORCE", "TB WAIT", "SW PARTIAL", "SW FORCE",
		"no policy", noMember, noPartial, otherNumber, "several quantities", "refused limits", "denied", "overridden", "-WRONGTYPE", "-NOPOLICY",
	} {
		require.Positive(t, o.seen[kind], kind)
	}
}

// TestUseUnderABoostIsMultiWithMultipliedNumbers does the same with boosts.
func TestUseUnderABoostIsMultiWithMultipliedNumbers(t *testing.T) {
	effort.Alone(t)
	o := newOracle(t, 2)
	o.boosts = true
	o.run(effort.Steps(20_000, 1_000_000))
	t.Log(o.seen)
	require.Greater(t, o.seen["boosted"], 1000)
}
