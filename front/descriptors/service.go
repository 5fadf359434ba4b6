// Package descriptors answers requests of Envoy's rate limit service by calls of RL.USE.
//
// The ports of the service decode a request into [Call.Request], call [Service.Answer], and encode [Call.Answer]. The rules
// of rls-config say which policies and keys a request charges: see package rls. For the namespaces of limitador-limits its
// limits do: see package limitador.
package descriptors

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/wire"
)

// Caller runs commands of one client of the server: see Conn of package transport/direct.
type Caller interface {
	// Do runs commands and appends their replies to out. replies is the number of commands.
	Do(commands []byte, replies int, out []byte) ([]byte, error)
}

// Service has the parts of the server that answers need. All fields are required but Counts and Tally.
type Service struct {
	// Rules returns the rules in force, or nil if there are none. It is nil if there can be none.
	Rules func() *rls.Config
	// Limits returns the limits of Limitador in force, or nil if there are none. It is nil if there can be none. A domain
	// that is one of their namespaces is theirs. Without Rules all domains are.
	Limits func() *limitador.Config
	// LimitsHeaders reports whether answers for limits of Limitador have header fields. It is required with Limits.
	LimitsHeaders func() bool
	// Options returns the options of the service, and the names of the header fields of answers.
	Options func() (rls.Options, wire.Headers)
	// Now returns the time of the server.
	Now func() limit.Instant
	// Counts counts the answers; nil counts none.
	Counts *Counts
	// Tally counts the hits of rules; nil counts none.
	Tally *Tally
}

// Call has the memory for a request and its answer. It is reused for one request after another. The zero Call is ready
// for use.
type Call struct {
	// Request is the request. Its texts may refer to the memory of the message that it was decoded from.
	Request rls.Request
	// Answer is the answer to the request. It is valid until the next one.
	Answer rls.Answer
	// Names are the names of the header fields of Answer.
	Names wire.Headers
	// Limited is the answer if limits of Limitador have answered the request. It is valid until the next one.
	Limited limitador.Answer

	plan      rls.Plan
	commands  []byte
	replies   []byte
	decisions []rls.Decision
	reply     use.Answer
	limited
}

// Bytes returns the memory that c keeps for keys, commands and replies, in bytes.
func (c *Call) Bytes() int {
	return c.plan.Bytes() + cap(c.commands) + cap(c.replies) + c.limited.plan.Bytes()
}

// AppendResponse appends the response with the answer to dst, as the message of the service.
func (c *Call) AppendResponse(dst []byte) []byte {
	dst = wire.AppendResponse(dst, &c.Answer, c.Names)
	if c.Limited.HasHeaders {
		dst = wire.AppendFields(dst, c.Limited.Fields())
	}
	return dst
}

// ErrReplaced means that the rules were replaced while a request ran.
var ErrReplaced = errors.New("UNAVAILABLE the rules were replaced meanwhile, try again")

// Answer answers the request of c by calls of by. Without an error, c.Answer is the answer. It returns the errors of
// [rls.Config.Plan], those of by, [ErrReplaced], and error replies of RL.USE as a [resp.Error]. After an error some
// descriptors of the request may have been charged. Any goroutine may call it, with a Call of its own.
func (s *Service) Answer(c *Call, by Caller) error {
	var err error
	if s.isLimited(c.Request.Domain) {
		err = s.answerLimits(c, Whole, max(c.Request.Hits, 1), s.LimitsHeaders(), by)
	} else {
		err = s.answer(c, by)
	}
	s.Counts.note(s, c, err)
	return err
}

// rules returns the rules in force, or nil if there are none.
func (s *Service) rules() *rls.Config {
	if s.Rules == nil {
		return nil
	}
	return s.Rules()
}

func (s *Service) answer(c *Call, by Caller) error {
	var o rls.Options
	o, c.Names = s.Options()
	c.Limited.HasHeaders = false
	if err := s.rules().Plan(&c.Request, &c.plan); err != nil {
		return err //nolint:wrapcheck // its text is the answer
	}
	if o.Together {
		if err := c.decide(by, true); err != nil {
			return err
		}
		c.plan.Together(c.decisions)
	}
	if err := c.decide(by, false); err != nil {
		return err
	}
	c.plan.Answer(o, c.decisions, s.Now(), &c.Answer)
	s.Tally.add(s, c, o)
	return nil
}

// decide makes the caller by decide the charges of the plan, in their order. If look is true,
// nothing is charged.
func (c *Call) decide(by Caller, look bool) (err error) {
	charges := c.plan.Charges
	c.commands, c.decisions = c.commands[:0], c.decisions[:0]
	if len(charges) == 0 {
		return nil
	}
	for i := range charges {
		is := &charges[i]
		call := use.Call{Policy: is.Policy, Key: is.Key, Quantity: is.Hits, Own: use.Window(is.Own)}
		switch {
		case look:
			call.Mode = "PEEK"
		case is.Note:
			call.Mode = "FORCE"
		}
		c.commands = call.AppendTo(c.commands)
	}
	if c.replies, err = by.Do(c.commands, len(charges), c.replies[:0]); err != nil {
		return err //nolint:wrapcheck // the ports know these errors
	}
	rest := c.replies
	for range charges {
		if rest, err = c.reply.Read(rest); err != nil {
			return failure(err)
		}
		c.decisions = append(c.decisions, decisionOf(&c.reply))
	}
	if len(rest) > 0 {
		return use.ErrReply
	}
	return nil
}

// failure returns the error of an answer for err, with which a call has failed.
func failure(err error) error {
	var refusal resp.Error
	if errors.As(err, &refusal) && refusal.Word() == noPolicy {
		return ErrReplaced
	}
	return err
}

// noPolicy is the first word of the error for a policy that does not exist.
const noPolicy = "NOPOLICY"

func decisionOf(a *use.Answer) rls.Decision {
	return rls.Decision{
		Denied: a.Binding.Refused != 0, Over: a.Clauses[0].Refused != 0,
		Limit: a.Binding.Limit, Remaining: a.Binding.Remaining, Reset: time.Duration(a.Binding.ResetMillis) * time.Millisecond,
	}
}
