package ratelimit

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Consequences are what follows from the decision on a call that could have waited: its denial counts for the bans of
// its keys, and subscribers are told of it. Only one goroutine at a time may use them. Nothing follows from nil.
type Consequences struct {
	notices *Notices
	all     []consequence
}

// consequence is what follows from the decision of one policy.
type consequence struct {
	// call owns its bytes, and has only those that a [Notice] needs.
	call Lookup
	// denial counts a denial, if bans is true. It owns its bytes.
	denial decide.Ask
	bans   bool
	// from and n say which clauses of the call are those of the policy. n is 0 if the call has no other.
	from, n int
}

// Consequences returns what follows from the decision on the call of l, or nil if nothing does. [Decider.Answer] then
// does nothing of it.
func (d *Decider) Consequences(l *Lookup) *Consequences {
	x := &Consequences{notices: d.service.Notices}
	x.add(d, l, 0, 0)
	return x.orNil()
}

// ConsequencesOf is Consequences for a call under several policies, which [Decider.AskAll] has prepared.
func (d *Decider) ConsequencesOf(parts []Part) *Consequences {
	x := &Consequences{notices: d.service.Notices}
	for i := range parts {
		x.add(d, &parts[i].Lookup, parts[i].from, len(parts[i].Limits.Clauses))
	}
	return x.orNil()
}

func (x *Consequences) add(d *Decider, l *Lookup, from, n int) {
	bans := l.bans(l.Limits, &limit.Decision{Refused: 1})
	if l.Lenient() || !bans && l.Rules.Main.Notify == 0 {
		return
	}
	l.waited = true
	is := consequence{call: *l, bans: bans, from: from, n: n}
	is.call.own()
	if bans {
		is.denial = *d.banAsk(l, l.Limits, true, false)
		is.denial.Own(nil)
	}
	x.all = append(x.all, is)
}

// own makes l own its bytes, and forget those that no [Notice] needs.
func (l *Lookup) own() {
	l.Policy, l.Key = bytes.Clone(l.Policy), bytes.Clone(l.state())
	l.Network, l.StateKey, l.Member, l.Quantities, l.Class, l.From, l.ID.Token = nil, nil, nil, nil, nil, nil, nil
}

func (x *Consequences) orNil() *Consequences {
	if len(x.all) == 0 {
		return nil
	}
	return x
}

// Bytes returns about how many bytes of memory x keeps.
func (x *Consequences) Bytes() (n int) {
	if x == nil {
		return 0
	}
	for i := range x.all {
		is := &x.all[i]
		n += int(unsafe.Sizeof(*is)) + len(is.denial.Key) + len(is.call.Policy) + len(is.call.Key)
	}
	return n
}

// Keys calls f with each key that [Consequences.Follow] changes. The keys belong to x.
func (x *Consequences) Keys(f func(key []byte)) {
	if x == nil {
		return
	}
	for i := range x.all {
		if is := &x.all[i]; is.bans {
			f(is.denial.Key)
		}
	}
}

// Follow does what follows from the decision on a, the ask of the call, which was decided at now without an error. If a
// ban begins, the decision on a becomes that of the ban. The keys of [Consequences.Keys] have to be locked if any keys
// are.
func (x *Consequences) Follow(st Store, a *decide.Ask, now limit.Instant) {
	if x == nil {
		return
	}
	for i := range x.all {
		is := &x.all[i]
		details := a.Details
		switch {
		case is.n > 0:
			details = a.Details[is.from : is.from+is.n]
		case a.Family != decide.Several:
			details = []limit.Decision{a.Decision}
		}
		x.notices.tell(&is.call, now, details)
		if !is.bans || a.Decision.Refused == 0 || is.n > 0 && !deniesAny(details) {
			continue
		}
		if st.Decide(&is.denial); is.denial.Err == nil && is.denial.Decision.Refused > 0 {
			beginBan(&a.Decision, &is.denial.Decision)
		}
	}
}
