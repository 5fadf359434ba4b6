package ratelimit

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Consequences has the steps that follow the decision on a call that may wait: a denial counts towards the bans of the
// keys, and subscribers get notices. Only one goroutine at a time may use it. A nil Consequences has no steps.
type Consequences struct {
	notices *Notices
	all     []consequence
}

// consequence has the steps that follow the decision of one policy.
type consequence struct {
	// call owns its bytes, and has only those that a [Notice] needs.
	call Lookup
	// denial counts a denial, if bans is true. It owns its bytes.
	denial decide.Ask
	bans   bool
	// The policy has n clauses of the call, from the index from on. n is 0 if the policy has all
	// clauses.
	from, n int
}

// Consequences returns the steps that follow the decision on the call of l; nil if there are none. [Decider.Answer]
// then leaves these steps to [Consequences.Follow].
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

// own makes l own its bytes, and drops those that no [Notice] needs.
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

// Follow takes the steps after the decision on a, the ask of the call, which was decided at now without an error. If a
// ban begins, the ban decides a instead. The keys of [Consequences.Keys] have to be locked if the caller holds locks of
// keys.
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
