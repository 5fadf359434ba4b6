package policies_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

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
		case q.mode == "FORCE" && (counts <= 0 || c.clause.is("CC") || c.clause.is("CL")):
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
