package simulation_test

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is what a call does to the state of its part.
type kind int

const (
	kindAdd      kind = iota // INCRBY: a
	kindAddBoth              // INCRBY of two keys in EXEC or a script: a and b
	kindTake                 // a window: a
	kindTakeBoth             // RL.MULTI of two windows: a and b
	kindAcquire              // CC.ACQUIRE: members
	kindRelease              // CC.RELEASE: members
	kindSet                  // SET, or a policy: a
	kindLook                 // a last look
)

var kindNames = [...]string{"add", "add both", "take", "take both", "acquire", "release", "set", "look"}

// input is a call, for the model.
type input struct {
	kind  kind
	n     int64 // what is added, taken or set, or the bit of a member
	limit int64
}

// output is what was answered. Of a call without an answer nothing is known.
type output struct {
	known  bool
	denied bool
	a, b   int64 // what the call left: a count, or what remains
}

// state is what a part holds.
type state struct{ a, b, members int64 }

// String shows a call and its answer in an error.
func (i input) String() string { return fmt.Sprintf("%s %d of %d", kindNames[i.kind], i.n, i.limit) }

// step is the model: it reports whether an answer is right in a state, and what the call leaves.
func step(s state, in input, out output) (bool, state) {
	switch in.kind {
	case kindAdd:
		s.a += in.n
		return !out.known || out.a == s.a, s
	case kindAddBoth:
		s.a, s.b = s.a+in.n, s.b+in.n
		return !out.known || out.a == s.a && out.b == s.b, s
	case kindTake:
		fits := s.a+in.n <= in.limit
		if fits {
			s.a += in.n
		}
		return !out.known || out.denied != fits && out.a == in.limit-s.a, s
	case kindTakeBoth:
		fits := max(s.a, s.b)+in.n <= in.limit
		if fits {
			s.a, s.b = s.a+in.n, s.b+in.n
		}
		return !out.known || out.denied != fits && out.a == in.limit-s.a && out.b == in.limit-s.b, s
	case kindAcquire:
		fits := s.members&in.n != 0 || int64(bits.OnesCount64(uint64(s.members))) < in.limit
		if fits {
			s.members |= in.n
		}
		return !out.known || out.denied != fits && out.a == in.limit-int64(bits.OnesCount64(uint64(s.members))), s
	case kindRelease:
		held := s.members&in.n != 0
		s.members &^= in.n
		return !out.known || out.denied != held, s
	case kindSet:
		s.a = in.n
		return true, s
	default:
		s.a += int64(bits.OnesCount64(uint64(s.members)))
		return out.a == s.a && out.b == s.b, state{s.a - int64(bits.OnesCount64(uint64(s.members))), s.b, s.members}
	}
}

// model is step for porcupine.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		ok, next := step(s.(state), in.(input), out.(output))
		return ok, next
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v -> %+v", in, out) },
}

// Bounds of a part, so that porcupine comes to an end.
const (
	mostCalls   = 60
	mostUnknown = 8
)

// part is a key, or two that belong together, with the history of the calls for it.
type part struct {
	name  string
	keys  []string
	topic topic
	limit int64

	mu      sync.Mutex // guards what follows
	ops     []porcupine.Operation
	begun   int
	unknown int
	excused bool // a fault has broken a promise
}

// order orders the calls of all clients: virtual time stands still while goroutines run.
type order struct{ n atomic.Int64 }

func (o *order) next() int64 { return o.n.Add(1) }

// forever is when a call without an answer returns.
const forever = int64(1) << 62

// take reports whether the part takes another call, and counts it.
func (p *part) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun >= mostCalls || p.unknown >= mostUnknown {
		return false
	}
	p.begun++
	return true
}

// note appends a call to the history.
func (p *part) note(client int, in input, out output, call, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !out.known {
		p.unknown++
		end = forever
	}
	p.ops = append(p.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: end})
}

// verdict lets porcupine look for an order.
func (p *part) verdict() porcupine.CheckResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.excused {
		return porcupine.Ok
	}
	return porcupine.CheckOperationsTimeout(model, p.ops, 0)
}

// String shows the history of a part.
func (p *part) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.name
	for _, op := range p.ops {
		text += fmt.Sprintf("\n  client %d [%d, %d] %v -> %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
	return text
}

// admission is what a key with a rate has admitted in a call.
type admission struct {
	n         int64
	call, end time.Time
}

// tooMany returns the first span in which more than limit + rate * t was admitted, for as many
// limiters as there may be, whose clocks may have been ahead.
func tooMany(all []admission, limit int64, each time.Duration, limiters int64, ahead time.Duration) string {
	slices.SortFunc(all, func(x, y admission) int { return x.end.Compare(y.end) })
	for i := range all {
		within, from := int64(0), all[i].call
		for j := range all {
			if all[j].call.Before(from) {
				continue
			}
			within += all[j].n
			span := all[j].end.Sub(from)
			if most := limiters * (limit + int64((span+ahead)/each)); within > most {
				return fmt.Sprintf("%d admitted within %v, at most %d may be", within, span, most)
			}
		}
	}
	return ""
}
