package decide

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Program is what a [Joint] decides: a decision that makes several asks, each about one or several parts of one
// state, or of several if it is a [Spanning]. A part is what another store has under a key of its own. A program owns
// the bytes that it needs, and has its own answer.
type Program interface {
	// Run makes the asks of the decision, one after the other, and has decide answer each at once. All of them
	// are decided at the instant of the Joint. If another server has changed the state meanwhile, Run is called
	// again, perhaps on another goroutine, but never on two at once. Only the last run counts. So nothing of an
	// earlier run may remain in the program, and Run must have no other effect. If it returns an error, the
	// state stays as it is. An ask with an error has changed nothing, and need not be an error of the run.
	Run(decide func(*Ask)) error
	// Number returns the number of the part whose key is key, from 1. Different keys have different numbers, and
	// the number of a key never changes. ok is false if the state has no part with this key.
	Number(key []byte) (n uint8, ok bool)
	// Guessed reports whether the answer may be guessed without the state if that cannot be reached, as the answer of a
	// limiter may.
	Guessed() bool
}

// Freeing is a [Program] that may make room for calls which wait under the keys of its ask, if Frees returns true.
type Freeing interface{ Frees() bool }

// Spanning is the program of a [Joint] about several states: that of its key, and those of its Others.
type Spanning interface {
	Program
	// Locate returns the index of the state that has the part with the key, 0 for that of the ask's key and i+1 for that
	// of Others[i], and the number of the part in that state, as Number does. ok is false if no state has such a part.
	Locate(key []byte) (state int, n uint8, ok bool)
}

// Reaching is a [Spanning] program that learns during a run which further states it is about, because one of its states
// has the names of their parts.
type Reaching interface {
	Spanning
	// Reach says that the run is also about the parts with the keys. It keeps no reference to them. If their states are
	// not the Others of the ask, the run ends with [ErrLinked], and the ask can be decided with these as its Others.
	Reach(keys [][]byte)
	// States returns the keys of the states that the last Reach was about, without that of the ask's key. They differ
	// from each other and are valid until the next run.
	States() [][]byte
}

// Divisible is a [Spanning] whose states may be changed one after another if Divides returns true, as those in several
// slots of a cluster can only be. What was charged to the first ones is taken back if a later one has changed meanwhile so
// that the program decides otherwise. Divides returns false if the states have to be changed together, as those that
// remember the call have to.
type Divisible interface {
	Spanning
	Divides() bool
}

// Part is a part of a [State]. The bytes of Entry are never changed.
type Part struct {
	Number uint8 // from 1
	Entry  entry.Entry
}

// State is a state of a [Joint] in memory. The caller sets the first three fields before it calls [Parts.Run].
type State struct {
	// All has the parts of the state, in the order of their numbers. None has expired.
	All []Part
	// Most is the maximum number of bytes of all parts. Each is the number of bytes that a part takes beyond its
	// value. An ask that makes the state grow beyond Most changes nothing, and its error is [limit.ErrTooLarge].
	Most, Each int

	// Changed says that the last run has changed All. TooLarge is the number of its asks that were too large.
	Changed  bool
	TooLarge int

	none   entry.Entry // of a part that does not exist
	room   []byte      // memory for the bytes of parts that have changed, until forget
	before []Part      // All before the run
	was    []Part      // All before a Several
	did    bool        // Changed before a Several
}

// Parts decides [Joint] asks on states in memory. One goroutine reuses it for one ask after another.
type Parts struct {
	// State is that of the key of the ask, and Others are those of the ask's Others, in their order.
	State
	Others []State

	plan    Rounds
	settles Settlements
	now     limit.Instant
	program Program
	// spanning is the program of an ask with Others; otherwise nil.
	spanning Spanning
	others   [][]byte   // those of the ask
	answer   func(*Ask) // the method decide
	places   []place    // of the clauses of a Several, or of the keys of settles
}

// place is where a part is.
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

// Run decides a, an ask of family [Joint], at now, and changes the states. The error is that of the program; then the
// states are as before, and none has changed. The caller sets a.Err.
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

// restore makes All what it was before the run.
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

// decide decides a, an ask of the program, and changes the parts that it is about.
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

// several decides a Several. With an error no part changes.
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

// settle decides a SettleSeveral. With an error no part changes. It is [ErrLinked] if a link names parts of states that are
// not those of the run.
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

// reach tells the program that the run is about the parts with the keys, too. The error is [ErrLinked] if that needs other
// states.
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

// locate sets places to those of the n parts of which key returns the keys.
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

// applyAll has decide set the plan for each of places, and makes the changes. With an error no part changes.
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

// keep keeps what the state is before a Several, and giveUp makes it that again.
func (s *State) keep() { s.was, s.did = append(s.was[:0], s.All...), s.Changed }

func (s *State) giveUp() { s.All, s.Changed = append(s.All[:0], s.was...), s.did }

// find returns the place of the part with the key. ok is false if no state has such a part.
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

// find returns the index in All of the part with the number n, or of the first part after it. A state has few parts, so it
// looks at one after another.
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

// apply makes the change of plan in the part with the number n. With [limit.ErrTooLarge] it changes nothing.
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

// changed returns the bytes of a part after the change of plan. old are those before, which stay as they are, because before,
// was and the caller still have them. The result is valid until forget.
func (s *State) changed(plan *Plan, old []byte) []byte {
	if more := len(old) + growth; cap(s.room)-len(s.room) < more {
		s.room = make([]byte, 0, max(2*cap(s.room), more)) // parts that have changed before keep the old memory
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

// growth is the number of bytes that a part grows by, at least, without memory that is allocated for it. maxRoom is the
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
