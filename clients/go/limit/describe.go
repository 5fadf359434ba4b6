package limit

import (
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/fields"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Style says which header fields a response has.
type Style = fields.Style

// These are the styles. Draft has RateLimit and RateLimit-Policy, X has X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset, and all but NoHeaders have Retry-After. A response 503 of the limiter has Retry-After with every style.
const (
	NoHeaders = fields.None
	Draft     = fields.Draft
	X         = fields.X
	Both      = fields.Both
)

// Field is a header field of a response.
type Field = fields.Field

// Problem is the body of a response to a denied request, in the form of RFC 9457.
type Problem = fields.Problem

// Headers appends the header fields of r to dst. A result without the server has only Retry-After: 1 second if it was refused
// unseen, and the wait if the limiter in the process has denied it.
func (l *Limiter) Headers(dst []Field, r *Result, s Style) []Field {
	switch {
	case r.Allowed && (r.Source == InProcess || r.Source == Unavailable):
		return dst
	case r.Source == Unavailable:
		return append(dst, Field{Name: fields.RetryAfter, Value: "1"})
	case s == NoHeaders:
		return dst
	case r.Source == InProcess:
		a := l.answer(r)
		for _, f := range fields.Append(nil, &a, s) {
			if f.Name == fields.RetryAfter {
				dst = append(dst, f)
			}
		}
		return dst
	}
	a := l.answer(r)
	return fields.Append(dst, &a, s)
}

// Problem returns the body of the denial r for a response with the given status.
func (l *Limiter) Problem(r *Result, status int) Problem {
	a := l.answer(r)
	p := fields.ProblemOf(&a, status)
	if r.Never {
		p.Detail = "The cost of the request exceeds the limit."
	}
	return p
}

// answer returns r as the header fields need it. The windows are known from inline limits alone.
func (l *Limiter) answer(r *Result) fields.Answer {
	a := fields.Answer{Policy: l.config.Policy, Denied: !r.Allowed, Blocked: r.Blocked, Binding: clause(&r.Numbers)}
	for i := range r.Limits {
		c := clause(&r.Limits[i])
		if i < len(l.config.Limits) {
			switch k := &l.config.Limits[i]; k.Family {
			case rules.Window:
				c.WindowMillis = k.Period.Milliseconds()
			case rules.Lease:
				c.Concurrent = true
			case rules.Bucket, rules.Cell, rules.Unlimited:
			}
		}
		a.Clauses = append(a.Clauses, c)
	}
	return a
}

func clause(n *Numbers) fields.Clause {
	return fields.Clause{
		Denies: n.Denies, Limit: n.Limit, Remaining: n.Remaining, RetryMillis: millis(n.RetryAfter), ResetMillis: millis(n.ResetAfter),
		Unlimited: n.Limit == rules.UnlimitedUnits,
	}
}

func millis(d time.Duration) int64 {
	if d == None {
		return -1
	}
	return d.Milliseconds()
}
