package descriptors

import (
	"time"

	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/rls"
)

// Way is what a request to Limitador is for.
type Way uint8

const (
	// Whole charges all limits that apply or, if one denies the request, none: ShouldRateLimit and POST
	// /check_and_report.
	Whole Way = iota
	// Check charges nothing: CheckRateLimit and POST /check.
	Check
	// Report charges all limits that apply, and is never denied: Report and POST /report.
	Report
)

// limited is the memory for requests that limits of Limitador answer.
type limited struct {
	plan     limitador.Plan
	parts    []use.Part
	outcomes use.Parts
	of       []limitador.Decision
}

// AnswerLimits answers the request of c by the limits of Limitador, whatever its domain is. delta takes the place of its
// hits: 0 charges nothing. headers says that c.Limited has header fields, which it has only with [Whole]. Without an
// error, c.Answer and c.Limited are the answer. The errors are those of [Service.Answer] and of [limitador.Config.Plan].
func (s *Service) AnswerLimits(c *Call, way Way, delta uint64, headers bool, by Caller) error {
	err := s.answerLimits(c, way, delta, headers, by)
	s.Counts.note(s, c, err)
	return err
}

// limits returns the limits of Limitador in force, or nil if there are none.
func (s *Service) limits() *limitador.Config {
	if s.Limits == nil {
		return nil
	}
	return s.Limits()
}

// isLimited reports whether limits of Limitador answer requests about the domain.
func (s *Service) isLimited(domain []byte) bool {
	limits := s.limits()
	return limits.Namespace(domain) != nil || limits != nil && s.Rules == nil
}

// has reports whether there are rules or limits for the domain.
func (s *Service) has(domain []byte) bool {
	return s.rules().Has(domain) || s.limits().Namespace(domain) != nil
}

func (s *Service) answerLimits(c *Call, way Way, delta uint64, headers bool, by Caller) error {
	limits := s.limits()
	switch {
	case limits == nil:
		return rls.ErrNoConfig
	case len(c.Request.Domain) == 0:
		return rls.ErrNoDomain
	}
	l := &c.limited
	r := limitador.Request{Namespace: c.Request.Domain, Descriptors: c.Request.Descriptors, Delta: delta}
	if err := limits.Plan(&r, &l.plan); err != nil {
		return err //nolint:wrapcheck // its text is the answer
	}
	l.of = l.of[:0]
	if len(l.plan.Calls) > 0 {
		if err := c.decideLimits(way, by); err != nil {
			return err
		}
	}
	c.Answer = rls.Answer{Overall: rls.OK, Statuses: c.Answer.Statuses[:0], Header: -1}
	if way == Report {
		c.Limited.Limited, c.Limited.HasHeaders = false, false
		return nil
	}
	l.plan.Answer(l.of, way == Whole && headers, &c.Limited)
	if c.Limited.Limited {
		c.Answer.Overall = rls.OverLimit
	}
	return nil
}

// decideLimits has by decide the calls of the plan: those of a report one after another, and others as one call.
func (c *Call) decideLimits(way Way, by Caller) (err error) {
	l := &c.limited
	c.commands, l.parts = c.commands[:0], l.parts[:0]
	for i := range l.plan.Calls {
		is := &l.plan.Calls[i]
		if way == Report {
			one := use.Call{Policy: is.Policy, Key: is.Key, Quantity: l.plan.Delta, Mode: "FORCE"}
			c.commands = one.AppendTo(c.commands)
		} else {
			l.parts = append(l.parts, use.Part{Policy: is.Policy, Key: is.Key, Quantity: l.plan.Delta})
		}
	}
	replies := len(l.plan.Calls)
	if way != Report {
		mode := ""
		if way == Check {
			mode = "PEEK"
		}
		replies, c.commands = 1, use.AppendAll(c.commands, l.parts, mode)
	}
	if c.replies, err = by.Do(c.commands, replies, c.replies[:0]); err != nil {
		return err //nolint:wrapcheck // the ports know these errors
	}
	rest := c.replies
	for range replies {
		if rest, err = l.outcomes.Read(rest, len(l.plan.Calls)/replies); err != nil {
			return failure(err)
		}
		for _, o := range l.outcomes.Outcomes {
			l.of = append(l.of, limitador.Decision{
				Denied: l.outcomes.Denied && o.Refused != 0, Untried: o.Untried,
				Limit: o.Limit, Remaining: o.Remaining, Reset: time.Duration(o.ResetMillis) * time.Millisecond,
			})
		}
	}
	if len(rest) > 0 {
		return use.ErrReply
	}
	return nil
}
