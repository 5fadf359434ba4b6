package rls

import (
	"math/bits"
	"regexp"
	"strings"
)

// Hits are what a request adds to the statistics of a rule, in hits. They are the same as in envoyproxy/ratelimit,
// except that all hits of a call that is denied count as Over: a [Decision] does not have the number of them that were
// within the limit.
type Hits struct {
	// Total is the number of all hits, Over of the hits over the limit, and Within of the hits
	// within it.
	Total, Over, Within int64
	// Near is the number of hits within the limit, but beyond [Options.Near].
	Near int64
	// Shadow is the number of hits over the limit that were answered OK because of shadow_mode.
	Shadow int64
}

// Hits calls count for each descriptor that a rule of the files limits and that has hits, with the rule. decisions are those
// on p.Charges. Limits of requests have no statistics: only their values could name them.
func (p *Plan) Hits(o Options, decisions []Decision, count func(r *Rule, h Hits)) {
	next := 0
	for i := range p.subjects {
		s := &p.subjects[i]
		if s.charges == 0 {
			continue
		}
		of := decisions[next : next+s.charges]
		next += s.charges
		hits := p.request.hits(i)
		if s.rule == nil || hits == 0 || s.unlimited(&of[0]) {
			continue
		}
		shadow := s.rule.Shadow && !of[0].Denied && isOver(of)
		count(s.rule, hitsOf(hits, o.Near, &of[0], of[0].Denied || shadow, shadow))
	}
}

// hitsOf returns the statistics of a call of n hits with the decision d. near is a percentage.
func hitsOf(n int64, near int, d *Decision, over, shadow bool) Hits {
	h := Hits{Total: n}
	if !over {
		h.Within = n
		h.Near = min(n, max(0, d.Limit-d.Remaining-part(d.Limit, near)))
		return h
	}
	h.Over = n
	if shadow {
		h.Shadow = n
	}
	return h
}

// part returns percent of n, rounded down. n is at least 0, and percent at most 100.
func part(n int64, percent int) int64 {
	high, low := bits.Mul64(uint64(n), uint64(percent))
	quotient, _ := bits.Div64(high, low, 100)
	return int64(quotient)
}

// Series names a rule in the statistics of ratelimit as its exporter for Prometheus does by default: Key1 and Key2 are the
// texts of the first two steps, and Key2 may be "". Rules that differ only below these steps have the same series.
type Series struct{ Domain, Key1, Key2 string }

// maxSeriesText is the maximum length of a text of a [Series] in bytes.
const maxSeriesText = 128

// Series returns the names of r. As in ratelimit, ':' and '|' and the dots of IPv4 addresses become '_', and each other '.'
// of a domain or of a text separates two names.
func (r *Rule) Series() Series {
	path := address.ReplaceAllStringFunc(unfit.Replace(r.path()), func(is string) string { return strings.ReplaceAll(is, ".", "_") })
	names := append(strings.SplitN(path, ".", 4), "", "")
	for i := range names {
		names[i] = strings.ToValidUTF8(names[i][:min(len(names[i]), maxSeriesText)], "_")
	}
	return Series{names[0], names[1], names[2]}
}

var (
	unfit   = strings.NewReplacer(":", "_", "|", "_")
	address = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)
)

// Find returns the index in [Config.Rules] of the rule of c that has the same policy as r. It returns -1 if there is
// none. r need not be a rule of c. c may be nil.
func (c *Config) Find(r *Rule) int {
	if c == nil {
		return -1
	}
	if r.index < len(c.rules) && c.rules[r.index] == r {
		return r.index
	}
	if same := c.named[r.Policy]; same != nil {
		return same.index
	}
	return -1
}
