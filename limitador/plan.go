package limitador

import (
	"errors"
	"math"

	"github.com/cellserver/cellserver/limitador/cel"
	"github.com/cellserver/cellserver/rls"
)

// MaxCalls is the maximum number of limits that apply to a request.
const MaxCalls = 64

// ErrCalls says that more than [MaxCalls] limits apply to a request.
var ErrCalls = errors.New("more than 64 limits apply to the request")

// Request is what a client of Limitador asks about. Its texts may be any bytes, and may refer to the message that they
// were decoded from, which then must not change as long as the [Plan] of the request is used.
type Request struct {
	Namespace []byte
	// Descriptors are those of the request. Their limits and hits have no meaning in Limitador. A front for POST
	// /check, /report and /check_and_report has one descriptor with the values. If a key is there twice, the last
	// one counts.
	Descriptors []rls.Descriptor
	// Delta is the quantity, at most [math.MaxInt64]. In messages 0 stands for 1, and CheckRateLimit always has 1.
	// 0 charges nothing.
	Delta uint64
}

// Call is a call of a policy that a request makes.
type Call struct {
	Limit *Limit
	// Policy and Key are those of the call. Policy must not be changed.
	Policy, Key []byte
}

// Plan says which limits apply to a request. A front keeps a Plan for its requests, one after another. The zero
// Plan is ready for use.
//
// The calls have the quantity [Plan.Delta] each, and no two of them have the same policy. ShouldRateLimit and POST
// /check_and_report have all of them decided together at one instant, which charges all if all pass, and otherwise
// none. CheckRateLimit and POST /check do the same but charge nothing. Report and POST /report force each call by
// itself, at one instant: a limit of 0 denies even a forced call, and must not keep the others from being charged.
type Plan struct {
	// Calls are in the order of the file. They are valid until the next request.
	Calls []Call
	// Delta is the quantity of each call.
	Delta int64

	keys  []byte
	value []byte
	scope cel.Scope
	// order has the indexes of calls that headers show, by what remains.
	order []int
}

// Bytes returns the memory that p keeps for keys and texts of requests, in bytes.
func (p *Plan) Bytes() int { return cap(p.keys) + cap(p.value) + p.scope.Bytes() }

// Plan sets p to the calls that r makes: one for each limit of its namespace whose conditions hold and whose
// variables exist. In an unknown namespace there are none. c is nil if no limits were loaded. The errors are [ErrCalls],
// [rls.ErrDescriptors], [rls.ErrEntries] and [rls.ErrHits]; after an error p must not be used. Plan allocates nothing
// once the memory of p is large enough.
func (c *Config) Plan(r *Request, p *Plan) error {
	p.Calls, p.keys = p.Calls[:0], p.keys[:0]
	if err := r.check(); err != nil {
		return err
	}
	p.Delta, p.scope.Descriptors = int64(r.Delta), r.Descriptors
	for _, is := range c.Namespace(r.Namespace) {
		from := len(p.keys)
		if !is.holds(&p.scope) || !p.appendKey(is) {
			p.keys = p.keys[:from]
			continue
		}
		if len(p.Calls) == MaxCalls {
			return ErrCalls
		}
		p.Calls = append(p.Calls, Call{Limit: is, Policy: is.policy, Key: p.keys[from:len(p.keys):len(p.keys)]})
	}
	return nil
}

// check returns an error of r, or nil.
func (r *Request) check() error {
	switch {
	case len(r.Descriptors) > rls.MaxDescriptors:
		return rls.ErrDescriptors
	case r.Delta > math.MaxInt64:
		return rls.ErrHits
	}
	for i := range r.Descriptors {
		if len(r.Descriptors[i].Entries) > rls.MaxEntries {
			return rls.ErrEntries
		}
	}
	return nil
}

// holds reports whether all conditions hold.
func (is *Limit) holds(s *cel.Scope) bool {
	for _, e := range is.Conditions {
		if !e.Holds(s) {
			return false
		}
	}
	return true
}

// appendKey appends the key of the state of is to p.keys: the values of the variables, in the order of the texts of
// the variables, joined by '|', or [rls.All] if there are no variables. exists is false if a variable has no value.
func (p *Plan) appendKey(is *Limit) (exists bool) {
	from := len(p.keys)
	for i, e := range is.sorted {
		if p.value, exists = e.AppendValue(p.value[:0], &p.scope); !exists {
			return false
		}
		if i > 0 {
			p.keys = append(p.keys, '|')
		}
		p.keys = rls.AppendPart(p.keys, p.value)
	}
	if len(is.sorted) == 0 {
		p.keys = append(p.keys, rls.All...)
	}
	p.keys = rls.BoundKey(p.keys, from)
	return true
}
