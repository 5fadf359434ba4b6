package policies_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// epoch is the start of the servers' clocks.
const epoch = limit.Instant(1_700_000_000 * int64(time.Second))

const ok = "+OK\r\n"

// node is a session on its own server, whose clock stands still.
type node struct {
	*inproc.Session
	t testing.TB
}

func newNode(t testing.TB, options ...string) *node {
	t.Helper()
	s, err := inproc.Feed(epoch, options...)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return &node{s, t}
}

// do runs a command and returns the bytes of its reply.
func (n *node) do(words ...string) string {
	n.t.Helper()
	reply, err := n.Do(words...)
	require.NoError(n.t, err, "%q", words)
	return string(reply)
}

// clause is a clause of a policy, as words.
type clause struct {
	words []string
	// units are the indexes of the words that are durations, and counts those of the words that a
	// boost multiplies.
	units, counts []int
	init          int // the index of the tokens of INIT, 0 without it
	quantity      int // the index of the quantity in RL.MULTI, 0 without one
	debt          bool
	calls         bool // the clause of the policy ends with CALLS, which words do not contain
}

func (c *clause) is(family string) bool { return c.words[0] == family }

// at returns the number at index i.
func (c *clause) at(i int) int64 {
	n, _ := strconv.ParseInt(c.words[i], 10, 64)
	return n
}

// scaled returns the words with durations in a unit that is smaller by factor.
func (c *clause) scaled(factor int64) []string {
	words := append([]string(nil), c.words...)
	for _, i := range c.units {
		words[i] = fmt.Sprint(limit.SatMul(c.at(i), factor))
	}
	return words
}

// asks returns words with the quantity of a call.
func (c *clause) asks(words []string, quantity int64) []string {
	switch {
	case c.quantity == 0:
		return words
	case c.calls && quantity > 0:
		quantity = 1
	case c.calls:
		quantity = 0
	}
	return append(append(append([]string(nil), words[:c.quantity]...), fmt.Sprint(quantity)), words[c.quantity:]...)
}

// boosted returns the clause with its numbers multiplied by thousandths.
func (c *clause) boosted(thousandths int64) clause {
	b := *c
	b.words = append([]string(nil), c.words...)
	for _, i := range c.counts {
		n := c.at(i)
		if i == 1 && c.is("CL") { // the limit is one more than the burst
			b.words[i] = fmt.Sprint(max(1, (n+1)*thousandths/1000) - 1)
			continue
		}
		b.words[i] = fmt.Sprint(max(1, n*thousandths/1000))
	}
	if c.init != 0 {
		b.words[c.init] = fmt.Sprint(c.at(c.init) * b.at(1) / c.at(1))
	}
	return b
}

// limits are the clauses of a policy or an override.
type limits struct {
	clauses []clause
	millis  bool
}

func (l *limits) words() (all []string) {
	for i := range l.clauses {
		all = append(all, l.clauses[i].words...)
	}
	return all
}

// ofPolicy returns the clauses as a policy has them.
func (l *limits) ofPolicy() (all []string) {
	for i := range l.clauses {
		if all = append(all, l.clauses[i].words...); l.clauses[i].calls {
			all = append(all, "CALLS")
		}
	}
	return all
}

// has reports whether there is a clause of a family.
func (l *limits) has(family string) bool {
	for i := range l.clauses {
		if l.clauses[i].is(family) {
			return true
		}
	}
	return false
}

func (l *limits) boosted(thousandths int64) *limits {
	b := &limits{millis: l.millis}
	for i := range l.clauses {
		b.clauses = append(b.clauses, l.clauses[i].boosted(thousandths))
	}
	return b
}

// dice makes random limits and calls.
type dice struct{ *rand.Rand }

func (d dice) upTo(n int) string { return fmt.Sprint(1 + d.IntN(n)) }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// clause returns a random clause of a family.
func (d dice) clause(family string) clause {
	c := d.clauseOfUnits(family)
	c.calls = family != "CC" && d.IntN(5) == 0
	return c
}

func (d dice) clauseOfUnits(family string) clause {
	switch family {
	case "CL":
		return clause{
			words: []string{"CL", fmt.Sprint(d.IntN(20)), d.upTo(30), d.upTo(60)},
			units: []int{3}, counts: []int{1, 2}, quantity: 4,
		}
	case "CC":
		return clause{words: []string{"CC", d.upTo(4), d.upTo(60)}, units: []int{2}, counts: []int{1}}
	case "SW":
		return d.window()
	}
	c := clause{
		words: []string{"TB", d.upTo(20), d.upTo(30), d.upTo(60)},
		units: []int{3}, counts: []int{1, 2}, quantity: 4,
	}
	switch d.IntN(5) {
	case 0:
		c.words = append(c.words, "GREEDY")
	case 1:
		c.words = append(c.words, "INTERVAL")
	case 2:
		c.words, c.debt = append(c.words, "DEBT"), true
	}
	if d.IntN(4) == 0 {
		c.init = len(c.words) + 1
		c.words = append(c.words, "INIT", fmt.Sprint(d.IntN(int(c.at(1))+1)))
	}
	return c
}

func (d dice) window() clause {
	c := clause{words: []string{"SW", d.upTo(20), d.upTo(60)}, units: []int{2}, counts: []int{1}, quantity: 3}
	switch d.IntN(6) {
	case 0:
		c.words = append(c.words, "LOG")
		return c
	case 1:
		c.words = append(c.words, "FIXED")
	case 2:
		c.words = append(c.words, "COUNTER")
	case 3:
		c.words = append(c.words, "BUCKETS", fmt.Sprint(2+d.IntN(9)))
		if d.IntN(2) == 0 {
			c.words = append(c.words, "EVEN")
		}
	}
	switch d.IntN(5) {
	case 0:
		c.words = append(c.words, "ANCHOR", "FIRST")
	case 1:
		c.words = append(c.words, "ANCHOR", "KEY")
	case 2:
		c.units = append(c.units, len(c.words)+1)
		c.words = append(c.words, "ANCHOR", fmt.Sprint(d.IntN(2_000_000_000)))
	}
	return c
}

// limits returns limits of a few clauses, or rarely of many.
func (d dice) limits(millis bool) *limits {
	n := pick(d, 1, 1, 1, 2, 2, 3)
	if d.IntN(50) == 0 {
		n = 16
	}
	l := &limits{millis: millis}
	for range n {
		l.clauses = append(l.clauses, d.clause(pick(d, "CL", "SW", "SW", "TB", "TB", "CC")))
	}
	return l
}

// pass returns a random time between two calls.
func (d dice) pass() time.Duration {
	switch d.IntN(100) {
	case 0:
		return time.Hour / time.Duration(1+d.IntN(60))
	case 1, 2, 3:
		return time.Duration(d.Int64N(int64(20 * time.Second)))
	case 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14:
		return time.Duration(d.Int64N(int64(time.Second)))
	case 15, 16:
		return 1
	case 17:
		return time.Duration(d.IntN(10)) * time.Second
	}
	return 0
}

// call is a random RL.USE.
type call struct {
	policy, key         string
	quantity            int64
	quantities          []int64 // one for each clause; nil if all have quantity
	mode                string  // a word, "" for no mode
	wait                int64   // of WAIT
	member              string  // "" for none
	millis, withDetails bool
}

func (d dice) call(policy, key string) call {
	c := call{policy: policy, key: key, quantity: pick[int64](d, 1, 1, 1, 1, 1, 2, 3, 5, 0, -1, -3, 1000)}
	switch d.IntN(10) {
	case 0, 1:
		c.mode = "PEEK"
	case 2:
		c.mode = "PARTIAL"
	case 3:
		c.mode = "FORCE"
	case 4:
		c.mode, c.wait = "WAIT", d.Int64N(30)
	}
	if d.IntN(8) != 0 {
		c.member = fmt.Sprintf("m%d", d.IntN(6))
	}
	c.millis, c.withDetails = d.IntN(2) == 0, d.IntN(3) == 0
	return c
}

// words returns the command.
func (c *call) words() []string {
	words := []string{"RL.USE", c.policy, c.key}
	if c.quantities == nil && c.quantity != 1 {
		words = append(words, fmt.Sprint(c.quantity))
	}
	for _, n := range c.quantities {
		words = append(words, fmt.Sprint(n))
	}
	if c.mode != "" {
		words = append(words, c.mode)
	}
	if c.mode == "WAIT" {
		words = append(words, fmt.Sprint(c.wait))
	}
	if c.member != "" {
		words = append(words, "MEMBER", c.member)
	}
	if c.millis {
		words = append(words, "MS")
	}
	if c.withDetails {
		words = append(words, "WITHDETAILS")
	}
	return words
}

// of returns the quantity of clause i, counted from 0.
func (c *call) of(i int) int64 {
	if c.quantities == nil {
		return c.quantity
	}
	return c.quantities[i]
}

// looks reports whether no clause is charged and none gets units back.
func (c *call) looks() bool {
	if c.mode == "PEEK" {
		return true
	}
	if c.quantities == nil {
		return c.quantity == 0
	}
	return !slices.ContainsFunc(c.quantities, func(n int64) bool { return n != 0 })
}

// stateKey returns the key of the state of clause i, counted from 0.
func (c *call) stateKey(i int) string {
	if i == 0 {
		return c.policy + ":" + c.key
	}
	return fmt.Sprintf("%s:%s#%d", c.policy, c.key, i+1)
}

// multi returns the RL.MULTI with the same limits as the call, and how many units of the call its
// time unit has.
func (c *call) multi(l *limits) (words []string, unit int64) {
	factor, millis := c.unit(l)
	words = []string{"RL.MULTI", fmt.Sprint(len(l.clauses))}
	for i := range l.clauses {
		words = append(words, c.stateKey(i))
	}
	for i := range l.clauses {
		words = append(words, l.clauses[i].asks(l.clauses[i].scaled(factor), c.of(i))...)
	}
	if l.has("CC") {
		words = append(words, "MEMBER", c.member)
	}
	if millis {
		words = append(words, "MS")
	}
	if c.mode == "PEEK" || c.looks() && l.has("CC") {
		words = append(words, "PEEK")
	}
	if c.withDetails {
		words = append(words, "WITHDETAILS")
	}
	return words, c.longer(millis)
}

// single returns the command of the family of the only clause, or nil if there is none.
func (c *call) single(l *limits) (words []string, unit int64) {
	factor, millis := c.unit(l)
	one := &l.clauses[0]
	switch {
	case one.is("TB"):
		words = []string{"TB.ACQUIRE", c.stateKey(0)}
	case one.is("SW") && c.mode != "WAIT":
		words = []string{"SW.ALLOW", c.stateKey(0)}
	default:
		return nil, 0
	}
	words = append(words, one.asks(one.scaled(factor), c.of(0))[1:]...)
	words = append(words, c.mode)
	if c.mode == "WAIT" {
		words = append(words, fmt.Sprint(c.wait*c.longer(millis)))
	}
	if millis {
		words = append(words, "MS")
	}
	return words, c.longer(millis)
}

// unit returns the time unit in which to write limits for a call, and the factor for converting
// them.
func (c *call) unit(l *limits) (factor int64, millis bool) {
	if c.millis && !l.millis {
		return 1000, true
	}
	return 1, l.millis
}

// longer returns how many time units of the call the unit of a command has.
func (c *call) longer(millis bool) int64 {
	if millis && !c.millis {
		return 1000
	}
	return 1
}

var integer = regexp.MustCompile(`:-?\d+\r\n`)

// inUnit converts the times of a reply to a longer unit.
func inUnit(reply string, unit int64) string {
	if unit == 1 {
		return reply
	}
	at := 0
	return integer.ReplaceAllStringFunc(reply, func(text string) string {
		n, _ := strconv.ParseInt(text[1:len(text)-2], 10, 64)
		if at++; (at+4)%5 >= 3 && n > 0 {
			n = (n + unit - 1) / unit
		}
		return fmt.Sprintf(":%d\r\n", n)
	})
}
