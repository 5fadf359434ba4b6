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
	"github.com/cellserver/cellserver/policy"
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

// counts returns the counters in the order of RL.POLICY GET. No call of the model reserves.
func (r *ruled) counts() []int64 {
	return []int64{
		r.allowed, r.denied, r.blocked, 0, r.exempted, r.exemptDenied, r.shadowHit,
		r.tries[[2]bool{}], r.tries[[2]bool{false, true}], r.tries[[2]bool{true, false}], r.tries[[2]bool{true, true}],
		0, 0,
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
	if len(all) > policy.MaxCallClauses {
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
		if clauses += len(s.limits.clauses); clauses > policy.MaxCallClauses {
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

const tooMany = "-ERR the policies have too many clauses, at most 64 in all\r\n"

// expressible reports whether every decision of the call can be asked of the other server.
func (o *together) expressible(all []*share, anyOf bool) bool {
	if !anyOf && slices.ContainsFunc(all, func(s *share) bool { return s.block != nil }) {
		return true // only the blocked policies are tried
	}
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
	s.details = append(s.details, details...)
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
