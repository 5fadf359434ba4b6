package policies_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// ruled is the test's model of a policy with entries of all kinds.
type ruled struct {
	believed
	millis, shadow          bool
	blocks, exempts         map[string]override
	candidate               *limits
	allowed, denied         int64
	blocked, exempted       int64
	exemptDenied, shadowHit int64
	tries                   map[[2]bool]int64 // by what denies: the policy, the candidate
}

// counts returns the counters in the order of RL.POLICY GET.
func (r *ruled) counts() []int64 {
	return []int64{
		r.allowed, r.denied, r.blocked, r.exempted, r.exemptDenied, r.shadowHit,
		r.tries[[2]bool{}], r.tries[[2]bool{false, true}], r.tries[[2]bool{true, false}], r.tries[[2]bool{true, true}],
	}
}

// answered counts the answer of the policy.
func (r *ruled) answered(denied bool) {
	if denied {
		r.denied++
	} else {
		r.allowed++
	}
}

// five are the integers of a decision, with times in milliseconds.
type five [5]int64

// shown returns the bytes of a decision, with times in seconds or milliseconds.
func (f five) shown(millis bool) string {
	if !millis {
		for i := 3; i < 5; i++ {
			if f[i] > 0 {
				f[i] = (f[i] + 999) / 1000
			}
		}
	}
	return inproc.Five(f[0], f[1], f[2], f[3], f[4])
}

// share is a policy of a call, with what the model believes about it.
type share struct {
	call
	rules      *ruled
	limits     *limits
	block      *override
	exempt     bool
	overridden bool
	details    []five // nil if the policy was not tried
}

func (s *share) lenient() bool { return s.exempt || s.rules.shadow }

// charges reports whether counters of the policy count the call.
func (s *share) charges() bool { return !s.looks() && s.greatest() > 0 }

// greatest returns the greatest quantity of the call.
func (s *share) greatest() int64 {
	if s.quantities == nil {
		return s.quantity
	}
	return slices.Max(s.quantities)
}

// least returns the least quantity of the call.
func (s *share) least() int64 {
	if s.quantities == nil {
		return s.quantity
	}
	return slices.Min(s.quantities)
}

// returns reports whether the call only gives units back.
func (s *share) returns() bool { return !s.looks() && s.greatest() <= 0 }

// together makes calls under one or several policies on one server. On another it makes, for each of
// their clauses, calls of commands with explicit limits, whose replies it combines by rules of its own.
type together struct {
	*oracle
	rules map[string]*ruled
}

func newTogether(t testing.TB, seed uint64) *together {
	t.Helper()
	return &together{oracle: newOracle(t, seed), rules: map[string]*ruled{}}
}

func (o *together) set(words ...string) { require.Equal(o.t, ok, o.ours.do(words...), "%q", words) }

// change makes a random change.
func (o *together) change() {
	name := o.name()
	r := o.rules[name]
	seconds := 1 + o.IntN(60)
	until, ex := o.now().Add(time.Duration(seconds)*time.Second), fmt.Sprint(seconds)
	pattern := o.pattern()
	switch n := o.IntN(20); {
	case r == nil || n < 3:
		o.setPolicy(name)
	case n < 4 && o.IntN(3) == 0:
		require.Equal(o.t, ":1\r\n", o.ours.do("RL.POLICY", "DEL", name))
		delete(o.rules, name)
	case n < 7:
		l := o.limits(r.millis)
		o.set(append([]string{"RL.OVERRIDE", "SET", name, pattern, "EX", ex, "LIMITS"}, l.ofPolicy()...)...)
		r.overrides[pattern] = override{limits: l, until: until}
	case n < 9:
		factor := pick[int64](o.dice, 500, 1000, 1500, 3333)
		o.set("RL.BOOST", name, pattern, fmt.Sprintf("%d.%03d", factor/1000, factor%1000), "EX", ex)
		r.boosts[pattern] = override{factor: factor, until: until}
	case n < 12:
		exact := o.key()
		o.set("RL.BLOCK", name, exact, "EX", ex)
		r.blocks[exact] = override{until: until}
	case n < 14:
		o.set("RL.EXEMPT", name, pattern, "EX", ex)
		r.exempts[pattern] = override{until: until}
	case n < 16:
		l := o.limits(r.millis)
		o.set(append([]string{"RL.POLICY", "TRY", name, "LIMITS"}, l.ofPolicy()...)...)
		r.candidate, r.tries = l, map[[2]bool]int64{}
	case n < 17:
		o.set("RL.POLICY", "TRY", name, "OFF")
		r.candidate = nil
	case n < 19:
		key := state(name, o.key(), o.IntN(3), o.IntN(4) == 0)
		require.Equal(o.t, o.base.do("DEL", key), o.ours.do("DEL", key))
	default:
		key := state(name, o.key(), o.IntN(3), o.IntN(4) == 0)
		require.Equal(o.t, o.base.do("SET", key, "text", "PX", "5000"), o.ours.do("SET", key, "text", "PX", "5000"))
	}
}

func (o *together) setPolicy(name string) {
	l, shadow := o.limits(o.IntN(3) == 0), o.IntN(4) == 0
	words := []string{"RL.POLICY", "SET", name}
	if l.millis {
		words = append(words, "MS")
	}
	if shadow {
		words = append(words, "SHADOW")
	}
	o.set(append(append(words, "LIMITS"), l.ofPolicy()...)...)
	r := o.rules[name]
	if r == nil {
		r = &ruled{
			believed: believed{overrides: map[string]override{}, boosts: map[string]override{}},
			blocks:   map[string]override{}, exempts: map[string]override{}, tries: map[[2]bool]int64{},
		}
		o.rules[name] = r
	}
	r.limits, r.millis, r.shadow = l, l.millis, shadow
}

// state returns the key of the state of clause i, counted from 0.
func state(policy, key string, i int, candidate bool) string {
	if candidate {
		policy += "#try"
	}
	if i == 0 {
		return policy + ":" + key
	}
	return fmt.Sprintf("%s:%s#%d", policy, key, i+1)
}

// shares returns the policies of a random call. All have the same options.
func (o *together) shares() (all []*share, anyOf bool) {
	first := o.dice.call("", "")
	if first.mode == "PARTIAL" {
		first.mode = ""
	}
	anyOf = o.IntN(2) == 0
	n := pick(o.dice, 1, 2, 2, 2, 3, 3, 4)
	if o.IntN(100) == 0 {
		n = 17
	}
	used := map[string]bool{}
	for range n {
		s := &share{call: first}
		s.policy, s.key = o.name(), o.key()
		if used[s.policy+":"+s.key] {
			continue
		}
		used[s.policy+":"+s.key] = true
		s.quantity = pick[int64](o.dice, 1, 1, 1, 1, 2, 3, 5, 0, -1, 1000)
		if s.rules = o.rules[s.policy]; s.rules != nil {
			o.look(s)
			if o.IntN(4) == 0 {
				s.quantities = o.quantities(len(s.limits.clauses))
			}
			b, found := at(s.rules.blocks, s.key, o.now())
			if found && !s.exempt && (s.greatest() > 0 || s.least() == 0) {
				s.block = &b
			}
		}
		all = append(all, s)
	}
	return all, anyOf && len(all) > 1
}

// look finds what applies to the key of s.
func (o *together) look(s *share) {
	r, now := s.rules, o.now()
	s.limits = r.limits
	own, found := at(r.overrides, s.key, now)
	if s.overridden = found; found {
		s.limits = own.limits
	}
	if b, found := at(r.boosts, s.key, now); found {
		s.limits = s.limits.boosted(b.factor)
	}
	_, s.exempt = at(r.exempts, s.key, now)
}

// words returns the call.
func (o *together) words(all []*share, anyOf bool) (words []string) {
	options := all[0].call
	options.quantity, options.quantities = 1, nil
	for i, s := range all {
		one := s.call
		one.mode, one.member, one.millis, one.withDetails = "", "", false, false
		switch {
		case i == 0:
			words = one.words()
			continue
		case anyOf:
			words = append(words, "ANY")
		default:
			words = append(words, "AND")
		}
		words = append(words, one.words()[1:]...)
	}
	return append(words, options.words()[3:]...)
}

// clauses returns the clauses of s, or those of the candidate of its policy.
func (o *together) clauses(s *share, candidate bool) []clause {
	if !candidate {
		return s.limits.clauses
	}
	l := s.rules.candidate
	if b, found := at(s.rules.boosts, s.key, o.now()); found {
		l = l.boosted(b.factor)
	}
	return l.clauses
}

// charge is a clause with its key, and what a call charges.
type charge struct {
	clause   clause
	key      string
	quantity int64
	several  bool // the call has a quantity for each clause
}

// words returns the clause in milliseconds, with the quantity.
func (c *charge) words(millis bool) []string {
	factor := int64(1000)
	if millis {
		factor = 1
	}
	return c.clause.asks(c.clause.scaled(factor), c.quantity)
}

// question is what the other server is asked at once.
type question struct {
	charges []charge
	words   [][]string
	mode    string
	wait    int64 // in milliseconds
	member  string
	looks   bool
}

// question returns the question about all clauses of shares, or those of their candidates. It returns
// nil if no command has the same meaning.
func (o *together) question(all []*share, candidate bool) *question {
	q := &question{looks: true}
	if len(all) == 0 {
		return q
	}
	q.mode, q.member, q.wait = all[0].mode, all[0].member, all[0].wait
	if !all[0].millis {
		q.wait *= 1000
	}
	for _, s := range all {
		q.looks = q.looks && s.looks()
		for i, c := range o.clauses(s, candidate) {
			one := charge{c, state(s.policy, s.key, i, candidate), s.of(i), s.quantities != nil}
			q.charges = append(q.charges, one)
			q.words = append(q.words, one.words(s.rules.millisOf(candidate, s)))
		}
	}
	for _, c := range q.charges {
		counts := c.quantity
		if c.clause.calls {
			counts = min(counts, 1)
		}
		switch {
		case c.clause.is("CC") && (c.quantity < 0 || c.several && c.quantity != 1 || c.quantity == 0 && !q.looks):
			return nil // a CC clause of RL.MULTI takes one place
		case q.mode == "FORCE" && !q.looks && (counts <= 0 || c.clause.is("CC") || c.clause.is("CL")):
			return nil
		case q.mode == "WAIT" && c.clause.is("TB") && len(q.charges) > 1:
			return nil
		}
	}
	return q
}

// millisOf reports whether the limits of the policy, or of its candidate, are in milliseconds.
func (r *ruled) millisOf(candidate bool, s *share) bool {
	if candidate {
		return r.candidate.millis
	}
	return s.limits.millis
}

// multi asks q as an RL.MULTI.
func (o *together) multi(q *question, peeks bool) string {
	words := []string{"RL.MULTI", fmt.Sprint(len(q.charges))}
	for _, c := range q.charges {
		words = append(words, c.key)
	}
	words = append(words, slices.Concat(q.words...)...)
	if slices.ContainsFunc(q.charges, func(c charge) bool { return c.clause.is("CC") }) {
		words = append(words, "MEMBER", q.member)
	}
	if words = append(words, "MS", "WITHDETAILS"); peeks {
		words = append(words, "PEEK")
	}
	return o.base.do(words...)
}

var number = regexp.MustCompile(`:(-?\d+)\r\n`)

// fives returns the decisions in a reply.
func fives(reply string) (all []five) {
	for i, text := range number.FindAllStringSubmatch(reply, -1) {
		if i%5 == 0 {
			all = append(all, five{})
		}
		all[i/5][i%5], _ = strconv.ParseInt(text[1], 10, 64)
	}
	return all
}

// ask has the other server decide q, which may charge it. failed is an error reply.
func (o *together) ask(q *question) (whole five, details []five, failed string) {
	reply := ""
	switch first := q.charges[0]; {
	case q.mode == "WAIT" && first.clause.is("TB"):
		words := append([]string{"TB.ACQUIRE", first.key}, q.words[0][1:]...)
		reply = o.base.do(append(words, "WAIT", fmt.Sprint(q.wait), "MS")...)
	case q.mode == "FORCE" && !q.looks:
		return o.force(q)
	default:
		reply = o.multi(q, q.looks)
	}
	if reply[0] == '-' {
		return whole, nil, reply
	}
	all := fives(reply)
	return all[0], all[min(1, len(all)-1):], ""
}

// force charges each clause of q by itself, which never denies.
func (o *together) force(q *question) (whole five, details []five, failed string) {
	if reply := o.multi(q, true); reply[0] == '-' {
		return whole, nil, reply
	}
	for i, c := range q.charges {
		name := map[string]string{"SW": "SW.ALLOW", "TB": "TB.ACQUIRE"}[c.clause.words[0]]
		words := append([]string{name, c.key}, q.words[i][1:]...)
		reply := o.base.do(append(words, "FORCE", "MS")...)
		require.Equal(o.t, "*5\r\n:0\r\n", reply[:8])
		details = append(details, fives(reply)[0])
	}
	return bind(details), details, ""
}

// bind combines decisions that pass.
func bind(all []five) (whole five) {
	for i, d := range all {
		if i == 0 || d[2] < whole[2] {
			whole[1], whole[2] = d[1], d[2]
		}
		if whole[3] = max(whole[3], d[3]); i == 0 {
			whole[3] = d[3]
		}
		whole[4] = max(whole[4], d[4])
	}
	return whole
}

// passing returns a decision as one that passes.
func passing(f five) five {
	f[0], f[3] = 0, -1
	return f
}

// call makes one call, and compares the bytes of the answer.
func (o *together) call() {
	all, anyOf := o.shares()
	looks := !slices.ContainsFunc(all, func(s *share) bool { return !s.looks() })
	words := o.words(all, anyOf)
	wants, kind := []string(nil), ""
	if failed := o.refused(all, anyOf, looks); failed != "" {
		wants, kind = []string{failed}, "error"
	} else if !o.expressible(all, anyOf) {
		return // no command has the same meaning
	} else if anyOf {
		wants, kind = o.any(all), "any"
	} else {
		wants, kind = []string{o.all(all)}, "all"
	}
	o.seen[fmt.Sprintf("%s of %d", kind, min(3, len(all)))]++
	if all[0].mode != "" {
		o.seen[kind+" "+all[0].mode]++
	}
	if got := o.ours.do(words...); !slices.Contains(wants, got) {
		require.Equal(o.t, wants[0], got, "%q %q", words, wants)
	}
	if strings.Contains(wants[0], "-WRONGTYPE") {
		o.seen["-WRONGTYPE"]++
	}
}

// refused returns the error reply to a call that cannot be decided, or "".
func (o *together) refused(all []*share, anyOf, looks bool) string {
	if len(all) > 16 {
		return tooMany
	}
	for _, s := range all {
		if n := s.least(); anyOf && n < 0 {
			return fmt.Sprintf("-ERR syntax error near '%d': with ANY no quantity is negative\r\n", n)
		}
	}
	clauses := 0
	for _, s := range all {
		if s.rules == nil {
			return "-NOPOLICY No such policy '" + s.policy + "'\r\n"
		}
		if clauses += len(s.limits.clauses); clauses > 16 {
			return tooMany
		}
	}
	if !anyOf && slices.ContainsFunc(all, func(s *share) bool { return s.block != nil }) {
		return ""
	}
	for _, lenient := range []bool{false, true} {
		for _, s := range all {
			if s.lenient() != lenient || s.block != nil {
				continue
			}
			if !anyOf && !looks && s.looks() {
				s.quantities = make([]int64, len(s.limits.clauses))
			}
			if failed := refusal(&s.call, s.limits); failed != "" && len(all) == 1 {
				return "-ERR " + failed + "\r\n"
			} else if failed != "" {
				return "-ERR policy '" + s.policy + "': " + failed + "\r\n"
			}
		}
	}
	return ""
}

const tooMany = "-ERR the policies have too many clauses, at most 16 in all\r\n"

// expressible reports whether every decision of the call can be asked of the other server.
func (o *together) expressible(all []*share, anyOf bool) bool {
	var strict []*share
	for _, s := range all {
		switch {
		case o.hasCandidate(s) && refusal(&s.call, s.rules.candidate) == "" && o.question([]*share{s}, true) == nil:
			return false
		case s.block != nil:
		case !anyOf && !s.lenient():
			strict = append(strict, s)
		case o.question([]*share{s}, false) == nil:
			return false
		}
	}
	return o.question(strict, false) != nil
}

// hasCandidate reports whether a candidate decides the call, too, if it is charged or denied.
func (o *together) hasCandidate(s *share) bool {
	c := s.rules.candidate
	return c != nil && !s.overridden && !s.exempt && !s.looks() && (s.quantities == nil || len(s.quantities) == len(c.clauses))
}

// try has the candidate of s decide, too. denied says whether the limits in force deny the call.
func (o *together) try(s *share, denied bool) {
	if !o.hasCandidate(s) {
		return
	}
	refused := refusal(&s.call, s.rules.candidate) != ""
	if !refused {
		whole, _, failed := o.ask(o.question([]*share{s}, true))
		refused = failed != "" || whole[0] != 0
	}
	if !s.returns() {
		s.rules.tries[[2]bool{denied, refused}]++
		o.seen["tried"]++
	}
}

// deny has the block of s deny the call.
func (o *together) deny(s *share) five {
	left := int64(s.block.until.Sub(o.now())+time.Millisecond-1) / int64(time.Millisecond)
	for _, c := range s.limits.clauses {
		most := c.at(1)
		if c.is("CL") {
			most++
		}
		s.details = append(s.details, five{1, most, 0, left, left})
	}
	if !s.looks() {
		s.rules.blocked++
	}
	if s.charges() {
		s.rules.denied++
	}
	o.seen["blocked"]++
	return s.details[0]
}

// spare decides the call for s, which cannot deny it. failed is an error reply.
func (o *together) spare(s *share, fails bool) (whole five, failed string) {
	whole, details, failed := o.ask(o.question([]*share{s}, false))
	if failed != "" && fails {
		return whole, failed
	}
	denied := failed != "" || whole[0] != 0
	for _, d := range details {
		s.details = append(s.details, passing(d))
	}
	switch {
	case s.looks():
	case s.exempt:
		if s.rules.exempted++; denied {
			s.rules.exemptDenied++
		}
	case denied:
		s.rules.shadowHit++
	}
	if s.charges() {
		s.rules.answered(false)
	}
	o.try(s, denied)
	o.seen["lenient"]++
	return passing(whole), failed
}

// all returns the reply to a call that charges all policies or none.
func (o *together) all(all []*share) string {
	var blocks []five
	for _, s := range all {
		if s.block != nil {
			blocks = append(blocks, o.deny(s))
		}
	}
	if blocks != nil {
		whole := blocks[0]
		for _, b := range blocks {
			whole[3], whole[4] = max(whole[3], b[3]), max(whole[4], b[4])
		}
		return shown(whole, all)
	}
	var strict, spared []*share
	for _, s := range all {
		if s.lenient() {
			spared = append(spared, s)
		} else {
			strict = append(strict, s)
		}
	}
	var whole five
	if len(strict) > 0 {
		answer, details, failed := o.ask(o.question(strict, false))
		if failed != "" {
			return failed
		}
		if whole = answer; whole[0] != 0 {
			o.seen["denied"]++
		}
		for _, s := range strict {
			n := len(s.limits.clauses)
			s.details, details = details[:n], details[n:]
			denies := slices.ContainsFunc(s.details, func(d five) bool { return d[0] != 0 })
			if !denies && whole[0] != 0 {
				continue
			}
			if s.charges() {
				s.rules.answered(denies)
			}
			o.try(s, denies)
		}
		if whole[0] != 0 {
			return shown(whole, all)
		}
	}
	var wholes []five
	failed := ""
	for _, s := range spared {
		answer, is := o.spare(s, len(all) == 1)
		if is != "" {
			failed = is
		} else {
			wholes = append(wholes, answer)
		}
	}
	switch {
	case len(strict) > 0:
		return shown(whole, all)
	case wholes == nil:
		return failed
	}
	return shown(bind(wholes), all)
}

// any returns the replies that a call may have of which the first policy that passes is charged. It has
// several if policies would pass in the same millisecond.
func (o *together) any(all []*share) (replies []string) {
	var wholes []five
	for _, s := range all {
		var whole five
		switch {
		case s.block != nil:
			whole = o.deny(s)
		case s.lenient():
			answer, failed := o.spare(s, true)
			if failed != "" {
				return []string{failed}
			}
			whole = answer
		default:
			answer, details, failed := o.ask(o.question([]*share{s}, false))
			if failed != "" {
				return []string{failed}
			}
			whole, s.details = answer, details
			if s.charges() {
				s.rules.answered(whole[0] != 0)
			}
			o.try(s, whole[0] != 0)
		}
		if whole[0] == 0 {
			if s != all[0] {
				o.seen["another pays"]++
			}
			return []string{shown(whole, all)}
		}
		wholes = append(wholes, whole)
	}
	o.seen["none pays"]++
	soonest := int64(-1)
	for _, w := range wholes {
		if w[3] >= 0 && (soonest < 0 || w[3] < soonest) {
			soonest = w[3]
		}
	}
	for _, w := range wholes {
		if w[3] == soonest {
			replies = append(replies, shown(w, all))
		}
	}
	return replies
}

// shown returns the bytes of a reply.
func shown(whole five, all []*share) string {
	first := all[0]
	if !first.withDetails {
		return whole.shown(first.millis)
	}
	var b strings.Builder
	b.WriteString("*2\r\n" + whole.shown(first.millis))
	if len(all) > 1 {
		fmt.Fprintf(&b, "*%d\r\n", len(all))
	}
	for _, s := range all {
		if s.details == nil {
			b.WriteString("*-1\r\n")
			continue
		}
		fmt.Fprintf(&b, "*%d\r\n", len(s.details))
		for _, d := range s.details {
			b.WriteString(d.shown(first.millis))
		}
	}
	return b.String()
}

// compareCounts compares the counters of all policies.
func (o *together) compareCounts() {
	counter := regexp.MustCompile(`:(\d+)\r\n`)
	for name, r := range o.rules {
		_, text, _ := strings.Cut(o.ours.do("RL.POLICY", "GET", name), "counts\r\n")
		var got []int64
		for _, n := range counter.FindAllStringSubmatch(text, -1) {
			is, _ := strconv.ParseInt(n[1], 10, 64)
			got = append(got, is)
		}
		require.Equal(o.t, r.counts(), got, name)
	}
}

// TestSeveralPoliciesAreTheirClauses: random calls under one or several policies have, byte for byte,
// the answers that follow from what commands with explicit limits answer on the same keys, and the
// policies have the counters that follow from them. Meanwhile the policies, and all kinds of entries
// that belong to them, change.
func TestSeveralPoliciesAreTheirClauses(t *testing.T) {
	effort.Alone(t)
	o := newTogether(t, 3)
	for i := range effort.Steps(40_000, 1_000_000) {
		if o.IntN(20) == 0 {
			o.change()
		}
		if d := o.pass(); d > 0 {
			for _, n := range []*node{o.ours, o.base} {
				n.Server().Clock.Advance(d)
			}
		}
		o.call()
		if i%1000 == 0 {
			o.compareCounts()
		}
	}
	o.compareCounts()
	t.Log(o.seen)
	for _, kind := range []string{
		"all of 1", "all of 2", "all of 3", "any of 2", "any of 3", "error of 3", "all PEEK", "all FORCE", "all WAIT", "any PEEK", "any FORCE", "any WAIT",
		"blocked", "lenient", "tried", "denied", "another pays", "none pays", "-WRONGTYPE",
	} {
		require.Positive(t, o.seen[kind], kind)
	}
}
