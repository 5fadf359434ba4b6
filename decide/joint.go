package decide

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Program is the decision of a [Joint]. It makes several asks, each about one or several parts of a state, or of
// several states if it is a [Spanning]. A part of a state corresponds to a key of its own in a store that has no joint
// states. A program owns the bytes that it needs, and has its own answer.
type Program interface {
	// Run makes the asks of the decision, one after the other, and has decide answer each at once. All of them are
	// decided at the instant of the Joint. If another server has changed the state meanwhile, Run is called again,
	// perhaps on another goroutine, but never on two at once. Only the results of the last run are used. So a run must
	// reset the results of an earlier run, and must have no effect outside the program. If it returns an error, the
	// state does not change. An ask with an error has changed nothing; the run may go on after it.
	Run(decide func(*Ask)) error
	// Number returns the number of the part whose key is key, from 1. Different keys have different numbers, and
	// the number of a key never changes. ok is false if the state has no part with this key.
	Number(key []byte) (n uint8, ok bool)
	// Guessed reports whether the configured fallback may answer if the store cannot be reached, as it may for a
	// limiter.
	Guessed() bool
}

// Freeing is a [Program] that may make room for calls that wait under the keys of its ask. It has done so if Frees
// returns true.
type Freeing interface{ Frees() bool }

// Spanning is the program of a [Joint] about several states: the state of its key, and the states
// of its Others.
type Spanning interface {
	Program
	// Locate returns the index of the state that has the part with the given key, and the number of the part in that
	// state, as Number does. The index is 0 for the state of the ask's key and i+1 for the state of Others[i]. ok is
	// false if no state has such a part.
	Locate(key []byte) (state int, n uint8, ok bool)
}

// Reaching is a [Spanning] program that learns during a run which further states it needs, because one of its states
// has the names of their parts.
type Reaching interface {
	Spanning
	// Reach says that the run also needs the parts with the given keys. It keeps no reference to the keys. If their
	// states are not the Others of the ask, the run ends with [ErrLinked]. The caller can then decide the ask with
	// these states as its Others.
	Reach(keys [][]byte)
	// States returns the keys of the states that the last Reach has asked for, except the key of the ask. They differ
	// from each other and are valid until the next run.
	States() [][]byte
}

// Divisible is a [Spanning] whose states may be changed one after another if Divides returns true. States in several
// slots of a cluster can only be changed in this way. If a later state has changed meanwhile, so that the program
// decides otherwise, the charges to the earlier ones are taken back. Divides returns false if the states have to be
// changed together, for example because all have to remember the call.
type Divisible interface {
	Spanning
	Divides() bool
}

// Part is a part of a [State]. The bytes of Entry are never changed.
type Part struct {
	Number uint8 // number of the part, from 1
	Entry  entry.Entry
}

// State is a state of a [Joint] in memory. The caller sets the first three fields before it calls [Parts.Run].
type State struct {
	// All has the parts of the state, in the order of their numbers. None has expired.
	All []Part
	// Most is the maximum number of bytes of all parts. Each is the number of bytes that a part takes beyond its
	// value. An ask that makes the state grow beyond Most changes nothing, and its error is [limit.ErrTooLarge].
	Most, Each int

	// Changed says that the last run has changed All. TooLarge is the number of asks of the last run that had the error
	// [limit.ErrTooLarge].
	Changed  bool
	TooLarge int

	none   entry.Entry // the entry of a part that does not exist
	room   []byte      // memory for the bytes of parts that have changed; valid until forget
	before []Part      // the value of All before the run
	was    []Part      // the value of All before a Several
	did    bool        // the value of Changed before a Several
}

// Parts decides [Joint] asks on states in memory. One goroutine reuses it for one ask after another.
type Parts struct {
	// State is the state of the ask's key, and Others are the states of the ask's Others, in their
	// order.
	State
	Others []State

	plan    Rounds
	settles Settlements
	now     limit.Instant
	program Program
	// spanning is the program, if the ask has Others; otherwise nil.
	spanning Spanning
	others   [][]byte   // the field Others of the ask
	answer   func(*Ask) // the method decide, stored so that each use does not allocate memory
	places   []place    // the places of the clauses of a Several, or of the keys of a settlement
}

// place is the position of a part: its state, and its number there.
type place struct {
	of *State
	n  uint8
}

// entry returns the entry of the part, which is valid until a part changes.
func (at place) entry() *entry.Entry { return at.of.entry(at.n) }

// These are the errors of asks that a [Joint] cannot make.
var (
	errNoPart  = errors.New("decide: the key is no part of the joint state")
	errProgram = errors.New("decide: the joint ask has no program for its states")
)

// Run decides a, an ask of family [Joint], at now, and changes the states. It returns the error of the program; no
// state has changed then. The caller sets a.Err.
func (p *Parts) Run(a *Ask, now limit.Instant) error {
	a.Now, a.Err = now, nil
	p.begin()
	for i := range p.Others {
		p.Others[i].begin()
	}
	if a.Program == nil || len(p.Others) != len(a.Others) {
		return errProgram
	}
	if p.spanning = nil; len(p.Others) > 0 {
		var ok bool
		if p.spanning, ok = a.Program.(Spanning); !ok {
			return errProgram
		}
	}
	if p.answer == nil {
		p.answer = p.decide
	}
	p.now, p.program, p.others = now, a.Program, a.Others
	err := a.Program.Run(p.answer)
	p.program, p.spanning, p.others = nil, nil, nil
	if err != nil {
		p.restore()
		for i := range p.Others {
			p.Others[i].restore()
		}
	}
	p.plan.Forget()
	return err
}

// Forget drops the references to the states.
func (p *Parts) Forget() {
	p.forget()
	for i := range p.Others {
		p.Others[i].forget()
	}
}

func (s *State) begin() {
	s.Changed, s.TooLarge = false, 0
	s.before = append(s.before[:0], s.All...)
}

// restore undoes the changes of All since the beginning of the run.
func (s *State) restore() { s.All, s.Changed = append(s.All[:0], s.before...), false }

func (s *State) forget() {
	for _, all := range [...]*[]Part{&s.All, &s.before, &s.was} {
		clear((*all)[:cap(*all)])
		*all = (*all)[:0]
	}
	if s.room = s.room[:0]; cap(s.room) > maxRoom {
		s.room = nil
	}
}

// decide decides a, an ask of the program, and changes its parts.
func (p *Parts) decide(a *Ask) {
	switch a.Family {
	case Several:
		a.Err = p.several(a)
	case SettleSeveral:
		a.Err = p.settle(a)
	case Joint:
		a.Err = errNotOne
	default:
		a.Err = p.one(a)
	}
}

func (p *Parts) one(a *Ask) error {
	at, ok := p.find(a.Key)
	if !ok {
		return errNoPart
	}
	plan := &p.plan.Plan
	if err := plan.One(at.of.entry(at.n), p.now, a); err != nil {
		return err
	}
	if a.Family == Settle && a.Linked {
		return ErrOfStates
	}
	return at.of.apply(at.n, plan)
}

// several decides a Several. After an error no part has changed.
func (p *Parts) several(a *Ask) error {
	if err := p.locate(len(a.Clauses), func(i int) []byte { return a.Clauses[i].Key }); err != nil {
		return err
	}
	entryOf := func(i int) *entry.Entry { return p.places[i].entry() }
	err := p.plan.All(a, p.now, entryOf)
	if err != nil || !p.plan.Changes {
		return err
	}
	return p.applyAll(p.plan.Again)
}

// settle decides a SettleSeveral. After an error no part has changed. The error is [ErrLinked] if a link names parts of
// states that the run does not have.
func (p *Parts) settle(a *Ask) error {
	s, plan := &p.settles, &p.plan.Plan
	defer s.Forget()
	s.Start(a)
	for more := true; more; more = s.More() {
		if err := p.reach(s.Further()); err != nil {
			return err
		}
		if err := p.locate(s.Len(), s.Key); err != nil {
			return err
		}
		s.Begin(p.now)
		for i, at := range p.places {
			s.Find(plan, i, at.entry())
		}
	}
	a.Linked = s.Linked()
	for _, at := range p.places {
		s.Look(plan, at.entry())
	}
	if err := s.Check(); err != nil {
		return err
	}
	return p.applyAll(func(i int, e *entry.Entry) error { return s.Settle(plan, i, e) })
}

// reach tells the program that the run also needs the parts with the given keys. The error is [ErrLinked] if the run
// does not have their states.
func (p *Parts) reach(keys [][]byte) error {
	if len(keys) == 0 {
		return nil
	}
	r, ok := p.program.(Reaching)
	if !ok {
		return errProgram
	}
	if r.Reach(keys); !slices.EqualFunc(r.States(), p.others, bytes.Equal) {
		return ErrLinked
	}
	return nil
}

// locate sets places to the places of n parts. key returns the key of each.
func (p *Parts) locate(n int, key func(i int) []byte) error {
	p.places = p.places[:0]
	for i := range n {
		at, ok := p.find(key(i))
		if !ok {
			return errNoPart
		}
		p.places = append(p.places, at)
	}
	return nil
}

// applyAll calls decide to set the plan for each of places, and makes the changes. After an error no part has changed.
func (p *Parts) applyAll(decide func(i int, e *entry.Entry) error) (err error) {
	p.keep()
	for i := range p.Others {
		p.Others[i].keep()
	}
	for i, at := range p.places {
		if err = decide(i, at.entry()); err == nil {
			err = at.of.apply(at.n, &p.plan.Plan)
		}
		if err != nil {
			p.giveUp()
			for i := range p.Others {
				p.Others[i].giveUp()
			}
			return err
		}
	}
	return nil
}

// keep saves the state before a Several, and giveUp restores it.
func (s *State) keep() { s.was, s.did = append(s.was[:0], s.All...), s.Changed }

func (s *State) giveUp() { s.All, s.Changed = append(s.All[:0], s.was...), s.did }

// find returns the place of the part with the given key. ok is false if no state has such a part.
func (p *Parts) find(key []byte) (at place, ok bool) {
	if p.spanning == nil {
		n, ok := p.program.Number(key)
		return place{&p.State, n}, ok
	}
	state, n, ok := p.spanning.Locate(key)
	switch {
	case !ok || state < 0 || state > len(p.Others):
		return place{}, false
	case state == 0:
		return place{&p.State, n}, true
	}
	return place{&p.Others[state-1], n}, true
}

// find returns the index in All of the part with the number n, or of the first part after it. The search is linear,
// because a state has few parts.
func (s *State) find(n uint8) (i int, found bool) {
	for i < len(s.All) && s.All[i].Number < n {
		i++
	}
	return i, i < len(s.All) && s.All[i].Number == n
}

// entry returns the entry of the part with the number n, which is valid until a part changes.
func (s *State) entry(n uint8) *entry.Entry {
	if i, found := s.find(n); found {
		return &s.All[i].Entry
	}
	s.none = entry.Entry{}
	return &s.none
}

// apply makes the change of plan in the part with the number n. It returns [limit.ErrTooLarge] and changes nothing if
// the state would become too large.
func (s *State) apply(n uint8, plan *Plan) error {
	i, found := s.find(n)
	switch {
	case plan.Action == Keep, plan.Action == Remove && !found:
		return nil
	case plan.Action == Remove:
		s.All, s.Changed = slices.Delete(s.All, i, i+1), true
		return nil
	}
	var old []byte
	grows := s.Each
	if found {
		old = s.All[i].Entry.Value
		grows = 0
	}
	value := s.changed(plan, old)
	if grows += len(value) - len(old); grows > 0 && s.bytes()+grows > s.Most {
		s.TooLarge++
		return limit.ErrTooLarge
	}
	is := Part{n, entry.Entry{Kind: plan.Kind, Expiry: plan.Expiry, Value: value}}
	if s.Changed = true; found {
		s.All[i] = is
	} else {
		s.All = slices.Insert(s.All, i, is)
	}
	return nil
}

// changed returns the bytes of a part after the change of plan. old has the bytes before the change. It does not change
// old, because before, was and the caller still refer to it. The result is valid until forget.
func (s *State) changed(plan *Plan, old []byte) []byte {
	if more := len(old) + growth; cap(s.room)-len(s.room) < more {
		s.room = make([]byte, 0, max(2*cap(s.room), more)) // parts that were changed before still refer to the old memory
	}
	from := len(s.room)
	s.room = append(s.room, old...)
	end := len(s.room)
	value := plan.Apply(s.room[from:end:end], s.room[end:])
	if free := s.room[end:cap(s.room)]; len(value) > 0 && len(value) <= len(free) && &value[0] == &free[0] {
		s.room = s.room[:end+len(value)]
	}
	return value
}

// growth is the number of bytes by which a changed part may at least grow before another allocation. maxRoom is the
// maximum capacity of the memory for changed parts that a [State] keeps.
const (
	growth  = 128
	maxRoom = 64 << 10
)

// bytes returns the number of bytes of all parts.
func (s *State) bytes() (n int) {
	for i := range s.All {
		n += s.Each + len(s.All[i].Entry.Value)
	}
	return n
}
