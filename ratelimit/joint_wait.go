package ratelimit

import (
	"slices"
	"time"
	"unsafe"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// JointToWait is [Decider.Joint] for a call that may wait and whose client can be parked: see [Decider.AskToWait].
// After a was decided, [Decider.Granted] or else [Decider.AnswerJoint] is called.
func (d *Decider) JointToWait(l *Lookup, a *decide.Ask) {
	d.Joint(l, a)
	a.Program.(*joint).how = parks
}

// Granted returns the ask of the call if a, a decided ask of [Decider.JointToWait], has granted tokens that become
// available later, and otherwise nil. It delivers the notices about the call, but does not count it. The result is
// valid until the end of the batch.
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

// Frees reports whether the call may have made room: see [decide.Freeing].
func (j *joint) Frees() bool {
	return j.lookup.Least() < 0 || slices.ContainsFunc(j.parts, func(p Part) bool { return p.Least() < 0 })
}

// Frees returns true, because a deleted state makes room: see [decide.Freeing].
func (*Forgetting) Frees() bool { return true }

// JointStore decides asks about the states of the keys of a call under its policies, in a store that other servers
// share. It belongs to a call that waits, and owns its bytes, or shares the bytes of the call's [Waiting]. Any
// goroutine may use it, but only one at a time may call FindBan and CountBans.
type JointStore struct {
	states []state // the states of the call, one for each policy
	db     int
	// bans has the bans that FindBan looks for and, once sought is set, the bans that it has found.
	bans   []keyBan
	sought bool
}

// keyBan is a ban of the key of a call under one of its policies.
type keyBan struct {
	of     int // index of the state, and of the [Part] if the call has several
	call   *ban.Call
	counts *policy.Counts // the counters of the policy; nil if they do not count the call
	// denied has the decisions on the clauses of the policy if the ban denies the call.
	denied []limit.Decision
}

// NewJointStore returns the JointStore for the call of l. It finds no ban.
func NewJointStore(l *Lookup) *JointStore { return &JointStore{states: []state{newState(l)}, db: l.DB} }

// JointStore returns the JointStore for the call of l, a result of [Decider.FindShared].
func (d *Decider) JointStore(l *Lookup) *JointStore {
	s := NewJointStore(l)
	d.addBan(s, 0, l)
	return s
}

// JointStoreOf is [Decider.JointStore] for a call under parts, which [Decider.FindAllShared] has looked up. w is the
// Waiting of the call.
func (d *Decider) JointStoreOf(parts []Part, w *Waiting) *JointStore {
	s := &JointStore{states: make([]state, len(parts)), db: parts[0].DB}
	for i := range parts {
		own := &w.Parts[i].Lookup
		s.states[i] = state{own.Policy, own.state()}
		d.addBan(s, i, &parts[i].Lookup)
	}
	return s
}

// addBan adds the ban of the key of l under its policy to the bans that s looks for. It does nothing if the policy has
// no BAN, or if a ban would not deny the call. of is the index of the state.
func (d *Decider) addBan(s *JointStore, of int, l *Lookup) {
	if l.Limits.Bans == nil || !l.bannable() {
		return
	}
	is := keyBan{of: of, call: l.Limits.Bans, counts: l.Counts(), denied: make([]limit.Decision, len(l.Limits.Clauses))}
	for i := range is.denied {
		is.denied[i] = d.deniedUntil(l, i, 0)
	}
	s.bans = append(s.bans, is)
}

// Bytes returns about how many bytes of memory s keeps, without the memory of a [Waiting]. nil
// keeps none.
func (s *JointStore) Bytes() int {
	if s == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*s)) + cap(s.bans)*int(unsafe.Sizeof(keyBan{}))
	for i := range s.bans {
		n += len(s.bans[i].denied) * int(unsafe.Sizeof(limit.Decision{}))
	}
	for i := range s.states {
		n += int(unsafe.Sizeof(state{})) + len(s.states[i].policy) + len(s.states[i].of)
	}
	return n
}

// Queues reports whether calls under key, that of a clause, wait in a queue: a state has one queue, under the key of its
// first clause. With a nil s each key has a queue.
func (s *JointStore) Queues(key []byte) bool {
	if s == nil {
		return true
	}
	_, n, ok := s.Locate(key)
	return ok && n == 1
}

// FindBan looks for bans of the keys, once, and reports whether the call has ended: a key is banned, or the store has
// not answered. Then a has the denial, under the key of the first policy that bans it, or the error. A nil JointStore
// finds no ban.
func (s *JointStore) FindBan(st Store, a *decide.Ask) (over bool) {
	if s == nil || s.sought || len(s.bans) == 0 {
		return false
	}
	s.sought = true
	var whole decide.Ask
	seek := seeking{JointStore: s}
	s.into(&whole, &seek)
	if st.Decide(&whole); whole.Err != nil {
		a.Err = whole.Err
		return true
	}
	found := s.bans[:0]
	for i := range s.bans {
		b, left := s.bans[i], seek.left[i]
		if left == 0 {
			continue
		}
		for j := range b.denied {
			b.denied[j].RetryAfter, b.denied[j].ResetAfter = left, left
		}
		if len(found) == 0 {
			a.Err, a.Key, a.Decision, a.Details = nil, s.states[b.of].key(), b.denied[0], b.denied
		}
		a.Decision.RetryAfter, a.Decision.ResetAfter = max(a.Decision.RetryAfter, left), max(a.Decision.ResetAfter, left)
		found = append(found, b)
	}
	s.bans = found
	return len(found) > 0
}

// CountBans counts the denial of the call by the bans that FindBan has found. w is the Waiting of a call under several
// policies, and then has the decisions of the policies that ban a key; otherwise it is nil.
func (s *JointStore) CountBans(w *Waiting) {
	for i := range s.bans {
		b := &s.bans[i]
		if b.counts != nil {
			b.counts.Banned.Add(1)
		}
		if w != nil {
			w.Parts[b.of].Details, w.banned = b.denied, true
		}
	}
}

// On returns a store in which st decides each ask alone, by an ask of family [decide.Joint]. If s is nil, it returns
// st.
func (s *JointStore) On(st Store) Store { return s.Charging(st, nil) }

// Charging is On for the ask of the call of w: if the ask passes, the parts that cannot deny the call are charged at
// the same instant, as by [Waiting.Charging]. w is nil for a call under one policy.
func (s *JointStore) Charging(st Store, w *Waiting) Store {
	if s == nil {
		return w.Charging(st)
	}
	return jointOn{s, st, w}
}

// jointOn is the result of [JointStore.Charging].
type jointOn struct {
	*JointStore
	store   Store
	waiting *Waiting
}

// Decide decides a as a part of the joint state: see [Store].
func (s jointOn) Decide(a *decide.Ask) {
	var whole decide.Ask
	s.into(&whole, &oneAsk{s.JointStore, a, s.waiting})
	if s.store.Decide(&whole); whole.Err != nil {
		a.Err = whole.Err
	}
}

// into makes a an ask of p, a program of the states.
func (s *JointStore) into(a *decide.Ask, p decide.Program) {
	s.states[0].into(a, s.db, p)
	for i := 1; i < len(s.states); i++ {
		a.Others = append(a.Others, s.states[i].key())
	}
}

// Number implements [decide.Program].
func (s *JointStore) Number(key []byte) (n uint8, ok bool) { return s.states[0].Number(key) }

// Locate implements [decide.Spanning].
func (s *JointStore) Locate(key []byte) (of int, n uint8, ok bool) {
	for i := range s.states {
		if n, ok = s.states[i].Number(key); ok {
			return i, n, true
		}
	}
	return 0, 0, false
}

// Guessed implements [decide.Program]: the programs of s make asks of limiters.
func (*JointStore) Guessed() bool { return true }

// oneAsk is the program that makes one ask and, if waiting is not nil, charges the parts that [Waiting.Charging]
// charges.
type oneAsk struct {
	*JointStore
	ask     *decide.Ask
	waiting *Waiting
}

// Run makes the ask, and then the charges: see [decide.Program].
func (p *oneAsk) Run(decideOn func(*decide.Ask)) error {
	p.ask.Err, p.ask.Lapsed, p.ask.Ends = nil, 0, 0
	p.waiting.Charging(asking(decideOn)).Decide(p.ask)
	return nil
}

// seeking is the program that looks for the bans of a JointStore. left has the time for which each bans its key, or 0.
type seeking struct {
	*JointStore
	left []time.Duration
}

// Run looks for the bans: see [decide.Program].
func (p *seeking) Run(decideOn func(*decide.Ask)) error {
	p.left = make([]time.Duration, len(p.bans))
	for i := range p.bans {
		b, of := &p.bans[i], &p.states[p.bans[i].of]
		a := decide.Ask{DB: p.db, Family: decide.Ban, Bans: b.call, Key: policy.AppendBanKey(nil, of.policy, of.of, false)}
		switch decideOn(&a); {
		case a.Err != nil:
			return a.Err
		case a.Decision.Refused > 0:
			p.left[i] = a.Decision.RetryAfter
		}
	}
	return nil
}

var (
	_ decide.Spanning = (*oneAsk)(nil)
	_ decide.Spanning = (*seeking)(nil)
)
