package ratelimit

import (
	"unsafe"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// JointToWait is [Decider.Joint] for a call that waits, whose client can be parked: see [Decider.AskToWait]. After a was
// decided, [Decider.Granted] or else [Decider.AnswerJoint] is called.
func (d *Decider) JointToWait(l *Lookup, a *decide.Ask) {
	d.Joint(l, a)
	a.Program.(*joint).how = parks
}

// Granted returns the ask of a call that has been granted tokens which become available later, if a, an ask of
// [Decider.JointToWait], has come to that, and otherwise nil. It tells subscribers of the call, but does not count it. The
// result is valid until the end of the batch.
func (d *Decider) Granted(a *decide.Ask) *decide.Ask {
	j := a.Program.(*joint)
	l, own := &j.lookup, &j.ask
	if a.Err != nil || j.how&parks == 0 || l.Blocked() || own.Decision.Refused != 0 || own.Decision.RetryAfter <= 0 {
		return nil
	}
	d.joints.used = append(d.joints.used, j)
	d.service.Notices.tell(l, l.Now, j.outcome.decided)
	return own
}

// Frees implements [decide.Freeing].
func (j *joint) Frees() bool { return j.lookup.Least() < 0 }

// Frees implements [decide.Freeing].
func (*Forgetting) Frees() bool { return true }

// JointStore decides asks about the state that a key has of a policy in a store that other servers share. It belongs to a
// call that waits, and owns its bytes. Any goroutine may use it, but only one at a time may call FindBan.
type JointStore struct {
	state
	db int
	// ban looks for a ban of the key, and denied has the decisions on the clauses of a call that one denies. They are
	// not set if no ban is to be looked for.
	ban    *decide.Ask
	denied []limit.Decision
}

// NewJointStore returns the JointStore for the call of l. It finds no ban.
func NewJointStore(l *Lookup) *JointStore { return &JointStore{state: newState(l), db: l.DB} }

// JointStore returns the JointStore for the call of l, a result of [Decider.FindShared], which does not look for a ban.
func (d *Decider) JointStore(l *Lookup) *JointStore {
	s := NewJointStore(l)
	if l.Limits.Bans == nil {
		return s
	}
	ban := *d.banAsk(l, l.Limits, false, false)
	ban.Own(nil)
	s.ban, s.denied = &ban, make([]limit.Decision, len(l.Limits.Clauses))
	for i := range s.denied {
		s.denied[i] = d.deniedUntil(l, i, 0)
	}
	return s
}

// Bytes returns about how many bytes of memory s keeps. nil keeps none.
func (s *JointStore) Bytes() int {
	if s == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*s)) + len(s.policy) + len(s.of) + len(s.denied)*int(unsafe.Sizeof(limit.Decision{}))
	if s.ban != nil {
		n += int(unsafe.Sizeof(*s.ban)) + len(s.ban.Key)
	}
	return n
}

// FindBan looks for a ban of the key, once, and reports whether the call is over with it: there is one, or the store has not
// answered. Then a has the denial or the error. nil finds none.
func (s *JointStore) FindBan(st Store, a *decide.Ask) (over bool) {
	if s == nil || s.ban == nil {
		return false
	}
	ban := s.ban
	s.ban = nil
	switch s.On(st).Decide(ban); {
	case ban.Err != nil:
		a.Err = ban.Err
		return true
	case ban.Decision.Refused == 0:
		return false
	}
	for i := range s.denied {
		s.denied[i].RetryAfter, s.denied[i].ResetAfter = ban.Decision.RetryAfter, ban.Decision.RetryAfter
	}
	a.Err, a.Decision, a.Details = nil, s.denied[0], s.denied
	return true
}

// On returns a store whose Decide has st decide an ask of family [decide.Joint] that makes only the given ask. On of nil is
// st.
func (s *JointStore) On(st Store) Store {
	if s == nil {
		return st
	}
	return jointOn{s, st}
}

// jointOn is the result of [JointStore.On].
type jointOn struct {
	*JointStore
	store Store
}

// Decide implements [Store].
func (s jointOn) Decide(a *decide.Ask) {
	var whole decide.Ask
	s.into(&whole, s.db, &oneAsk{s.state, a})
	if s.store.Decide(&whole); whole.Err != nil {
		a.Err = whole.Err
	}
}

// oneAsk is the program that makes one ask.
type oneAsk struct {
	state
	ask *decide.Ask
}

// Run implements [decide.Program].
func (p *oneAsk) Run(decideOn func(*decide.Ask)) error {
	p.ask.Err, p.ask.Lapsed, p.ask.Ends = nil, 0, 0
	decideOn(p.ask)
	return nil
}

// Guessed implements [decide.Program]: it makes asks of limiters.
func (*oneAsk) Guessed() bool { return true }
