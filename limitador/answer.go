package limitador

import (
	"strconv"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/rls"
)

// These are the names of the headers of DRAFT_VERSION_03, in the order in which Limitador sends them.
const (
	HeaderLimit     = "X-RateLimit-Limit"
	HeaderRemaining = "X-RateLimit-Remaining"
	HeaderReset     = "X-RateLimit-Reset"
)

// Decision is the decision on a [Call].
type Decision struct {
	// Denied says that the policy denies the request: because of its limits, a block or a ban. It is false for a
	// policy that is lenient.
	Denied bool
	// Untried says that the limits were not tried, because another policy has a block. The other fields have no
	// meaning then.
	Untried bool
	// Limit and Remaining are the limit that was used and the units that remain of it.
	Limit, Remaining int64
	// Reset is the time until the window ends, or until the block does if the call is blocked. It is
	// [limit.NoRetry] for a block without an end. 0 stands for the length of the window of the file.
	Reset time.Duration
}

// Answer is the answer to a request that may be denied. The answer to a report is always the same. A front keeps an
// Answer for its requests, one after another.
type Answer struct {
	// Limited says that the request is denied.
	Limited bool
	// Limit is the limit that denies it, of several the first without variables, or else the first. It is nil if
	// Limited is false.
	Limit *Limit
	// HasHeaders says that there are the three headers: at least one limit applies.
	HasHeaders bool
	// Limits is the value of [HeaderLimit]: the limit with the least remaining units, and all limits with their
	// windows and names in that order.
	Limits []byte
	// Remaining and Reset are those of the limit with the least remaining units. Reset is in seconds.
	Remaining, Reset int64

	numbers []byte // the values of Fields
	fields  [3]rls.Field
}

// Fields returns the header fields of a, or nil if it has none, in the order in which Limitador sends them. The values are
// valid as long as a is.
func (a *Answer) Fields() []rls.Field {
	if !a.HasHeaders {
		return nil
	}
	a.numbers = strconv.AppendInt(a.numbers[:0], a.Remaining, 10)
	end := len(a.numbers)
	a.numbers = strconv.AppendInt(a.numbers, a.Reset, 10)
	a.fields = [...]rls.Field{
		{Name: HeaderLimit, Value: a.Limits}, {Name: HeaderRemaining, Value: a.numbers[:end:end]}, {Name: HeaderReset, Value: a.numbers[end:]},
	}
	return a.fields[:]
}

// forever is the reset of a block without an end, in seconds.
const forever = 365 * 86400

// Answer sets a to the answer to the request of p. decisions are those on p.Calls. headers says that the answer has
// the headers, which CheckRateLimit and POST /check do not have. Answer allocates nothing once the memory of p and a
// is large enough.
func (p *Plan) Answer(decisions []Decision, headers bool, a *Answer) {
	*a = Answer{Limits: a.Limits[:0], numbers: a.numbers}
	for i := range p.Calls {
		is := p.Calls[i].Limit
		if decisions[i].Denied && (a.Limit == nil || len(a.Limit.Variables) > 0 && len(is.Variables) == 0) {
			a.Limited, a.Limit = true, is
		}
	}
	if headers {
		p.headers(decisions, a)
	}
}

// headers sets the fields of a for headers.
func (p *Plan) headers(decisions []Decision, a *Answer) {
	p.order = p.order[:0]
	for i := range decisions {
		if decisions[i].Untried {
			continue
		}
		at := len(p.order)
		p.order = append(p.order, i)
		for ; at > 0 && p.remaining(decisions, i, a) < p.remaining(decisions, p.order[at-1], a); at-- {
			p.order[at] = p.order[at-1]
		}
		p.order[at] = i
	}
	if len(p.order) == 0 {
		return
	}
	first := p.order[0]
	a.HasHeaders, a.Remaining, a.Reset = true, p.remaining(decisions, first, a), p.reset(first, &decisions[first])
	a.Limits = strconv.AppendInt(a.Limits, decisions[first].Limit, 10)
	for _, i := range p.order {
		is := p.Calls[i].Limit
		a.Limits = strconv.AppendInt(append(a.Limits, ", "...), decisions[i].Limit, 10)
		a.Limits = strconv.AppendInt(append(a.Limits, ";w="...), is.Seconds, 10)
		if is.Name != nil {
			a.Limits = append(a.Limits, `;name="`...)
			for _, c := range []byte(*is.Name) {
				a.Limits = append(a.Limits, shown(c))
			}
			a.Limits = append(a.Limits, '"')
		}
	}
}

// shown returns the character of a name as a header has it. As in Limitador, quotes are single. Control characters,
// which a header must not have, are spaces.
func shown(c byte) byte {
	switch {
	case c == '"':
		return '\''
	case c < ' ' || c == 0x7f:
		return ' '
	}
	return c
}

// remaining returns the units that the answer shows as remaining of the limit of call i: if the request is denied,
// those that would remain if this limit had been charged.
func (p *Plan) remaining(decisions []Decision, i int, a *Answer) int64 {
	d := &decisions[i]
	switch {
	case d.Denied:
		return 0
	case a.Limited:
		return max(d.Remaining-p.Delta, 0)
	default:
		return d.Remaining
	}
}

// reset returns the seconds until the window of call i ends.
func (p *Plan) reset(i int, d *Decision) int64 {
	switch {
	case d.Reset < 0:
		return forever
	case d.Reset > 0:
		return limit.SecondsUp(d.Reset)
	default:
		return p.Calls[i].Limit.Seconds
	}
}
