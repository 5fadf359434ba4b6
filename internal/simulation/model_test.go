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

// kind is the effect of a call on the state of its part.
type kind int

const (
	kindAdd      kind = iota // INCRBY: a
	kindAddBoth              // INCRBY of two keys in EXEC or a script: a and b
	kindTake                 // a window: a
	kindTakeBoth             // RL.MULTI of two windows: a and b
	kindAcquire              // CC.ACQUIRE: members
	kindRelease              // CC.RELEASE: members
	kindSet                  // SET, or a policy: a
	kindReserve              // a call with RESERVE: a
	kindCommit               // RL.COMMIT: a
	kindCancel               // RL.CANCEL: a
	kindLapse                // the end of a reservation's time: a
	kindLook                 // a final read
)

var kindNames = [...]string{"add", "add both", "take", "take both", "acquire", "release", "set", "reserve", "commit", "cancel", "lapse", "look"}

// input is a call as the model sees it.
type input struct {
	kind  kind
	n     int64 // the number that is added, taken, set or committed, or the bit of a member
	limit int64
	again bool   // the call was sent again, and its reply may tell a later state
	hold  uint64 // the bit of a reservation
	units int64  // what it has reserved
}

// output is the reply. known is false for a call without a reply.
type output struct {
	known  bool
	denied bool
	a, b   int64 // the state after the call: a count, or what remains; or the reply to RL.COMMIT and RL.CANCEL
}

// state is the state of a part. The reservations have one bit each: those that are live, those whose time
// has passed, and those that were settled.
type state struct {
	a, b, members         int64
	live, lapsed, settled uint64
}

// String returns a call for error messages.
func (i input) String() string {
	if i.hold != 0 {
		return fmt.Sprintf("%s %d of hold %d of %d", kindNames[i.kind], i.n, bits.TrailingZeros64(i.hold), i.units)
	}
	return fmt.Sprintf("%s %d of %d", kindNames[i.kind], i.n, i.limit)
}

// step is the model: it reports whether a reply is right in a state, and returns the state after
// the call.
func step(s state, in input, out output) (bool, state) {
	switch in.kind {
	case kindAdd:
		s.a += in.n
		return !out.known || out.a == s.a, s
	case kindAddBoth:
		s.a, s.b = s.a+in.n, s.b+in.n
		return !out.known || out.a == s.a && out.b == s.b, s
	case kindTake, kindReserve:
		fits := s.a+in.n <= in.limit
		if fits {
			s.a += in.n
			s.live |= in.hold
		}
		return !out.known || out.denied != fits && (in.again || out.a == max(0, in.limit-s.a)), s
	case kindCommit, kindCancel, kindLapse:
		reply, s := settled(s, in)
		return !out.known || in.kind == kindLapse || out.a == reply || in.again && out.a == 0 && reply > 0, s
	case kindTakeBoth:
		fits := max(s.a, s.b)+in.n <= in.limit
		if fits {
			s.a, s.b = s.a+in.n, s.b+in.n
		}
		return !out.known || out.denied != fits && (in.again || out.a == in.limit-s.a && out.b == in.limit-s.b), s
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
		fits := out.a == s.a && out.b == s.b
		s.a -= int64(bits.OnesCount64(uint64(s.members)))
		return fits, s
	}
}

// settled ends a reservation, and returns the reply and the state after it. A client that sends RL.COMMIT again may
// get 0 in its place.
func settled(s state, in input) (reply int64, next state) {
	switch live, lapsed := s.live&in.hold != 0, s.lapsed&in.hold != 0; {
	case live && in.kind == kindLapse:
		s.lapsed |= in.hold
		s.a -= in.units
	case in.kind == kindLapse:
		return 0, s
	case live:
		s.a += in.n - in.units
		s.settled |= in.hold
		reply = 1
	case lapsed && in.kind == kindCommit:
		s.a += in.n
		s.settled |= in.hold
		reply = 2
	case lapsed:
		s.settled |= in.hold
	case s.settled&in.hold != 0:
		return 0, s
	default:
		return -1, s
	}
	s.live &^= in.hold
	s.lapsed &^= s.settled
	return reply, s
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

// Bounds of a part, so that porcupine terminates.
const (
	maxCalls   = 60
	maxUnknown = 8
)

// part is a key, or two related keys, with the history of their calls.
type part struct {
	name  string
	keys  []string
	topic topic
	limit int64
	how   int // the kind of the limiter

	mu      sync.Mutex // guards the fields below
	ops     []porcupine.Operation
	begun   int
	unknown int
	excused bool // a fault has broken a promise
	held    int  // the number of reservations
	short   []*lapse
}

// lapse is the end of a reservation whose time passes in the history.
type lapse struct {
	in    input
	due   time.Time     // by a clock that is right, at the earliest
	late  time.Duration // how much later it may be
	after int64         // a number of the order at which it had not ended
}

// order numbers the calls of all clients, because virtual time stands still while goroutines run.
type order struct{ n atomic.Int64 }

func (o *order) next() int64 { return o.n.Add(1) }

// forever is the return time of a call without a reply.
const forever = int64(1) << 62

// take reports whether the part accepts another call, and counts it.
func (p *part) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun >= maxCalls || p.unknown >= maxUnknown {
		return false
	}
	p.begun++
	return true
}

// reserve returns the bit of a new reservation.
func (p *part) reserve() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held++
	return 1 << (p.held - 1)
}

// lapses adds the end of a reservation that was sent at the number call of the order.
func (p *part) lapses(in input, due time.Time, late time.Duration, call int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in.kind, in.n = kindLapse, 0
	p.short = append(p.short, &lapse{in, due, late, call})
}

// pass appends the reservations whose time has passed to the history. ahead returns how far the clocks of
// servers may be from the right one.
func (p *part) pass(o *order, ahead func() time.Duration) {
	now := o.next()
	p.mu.Lock()
	defer p.mu.Unlock()
	wrong := ahead()
	p.short = slices.DeleteFunc(p.short, func(l *lapse) bool {
		switch left := time.Until(l.due); {
		case left > wrong:
			l.after = now
		case left < -wrong-l.late-time.Second:
			p.ops = append(p.ops, porcupine.Operation{
				ClientId: lapseClient + bits.TrailingZeros64(l.in.hold), Input: l.in, Output: output{known: true}, Call: l.after, Return: o.next(),
			})
			return true
		}
		return false
	})
}

// lapseClient is the number of the client of a lapse, plus the number of its reservation.
const lapseClient = 10_000

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

// verdict makes porcupine search for a linearization.
func (p *part) verdict() porcupine.CheckResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.excused {
		return porcupine.Ok
	}
	return porcupine.CheckOperationsTimeout(model, p.ops, 0)
}

// String returns the history of a part.
func (p *part) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.name
	for _, op := range p.ops {
		text += fmt.Sprintf("\n  client %d [%d, %d] %v -> %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
	return text
}

// admission is what a key with a rate has admitted in one call.
type admission struct {
	n         int64
	call, end time.Time
}

// tooMany returns the first span in which more than limit + rate * t was admitted. limiters is how
// many limiters there may have been, and ahead how far their clocks may have been ahead.
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
