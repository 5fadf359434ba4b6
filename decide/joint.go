package decide

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// Program is what a [Joint] decides: a decision that makes several asks, each about one or several parts of one
// state. A part is what another store has under a key of its own. A program owns the bytes that it needs, and has
// its own answer.
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

// Freeing is a [Program] that may make room for calls which wait under the key of its ask, if Frees returns true.
type Freeing interface{ Frees() bool }

// Part is a part of the state of a [Joint]. The bytes of Entry are never changed.
type Part struct {
	Number uint8 // from 1
	Entry  entry.Entry
}

// Parts decides [Joint] asks on a state in memory. One goroutine reuses it for one ask after another. The caller
// sets the first three fields before it calls [Parts.Run].
type Parts struct {
	// All has the parts of the state, in the order of their numbers. None has expired.
	All []Part
	// Most is the maximum number of bytes of all parts. Each is the number of bytes that a part takes beyond its
	// value. An ask that makes the state grow beyond Most changes nothing, and its error is [limit.ErrTooLarge].
	Most, Each int

	// Changed says that the last run has changed All. TooLarge is the number of its asks that were too large.
	Changed  bool
	TooLarge int

	plan    Rounds
	settles Settlements
	now     limit.Instant
	program Program
	answer  func(*Ask)  // the method decide
	numbers []uint8     // of the clauses of a Several or SettleSeveral
	none    entry.Entry // of a part that does not exist
	before  []Part      // All before the run
	was     []Part      // All before a Several or SettleSeveral
}

// These are the errors of asks that a [Joint] cannot make.
var (
	errNoPart  = errors.New("decide: the key is no part of the joint state")
	errProgram = errors.New("decide: the joint ask has no program")
)

// Run decides a, an ask of family [Joint], at now, and changes All. The error is that of the program; then All is as
// before, and Changed is false. The caller sets a.Err.
func (p *Parts) Run(a *Ask, now limit.Instant) error {
	a.Now, a.Err = now, nil
	p.Changed, p.TooLarge = false, 0
	if a.Program == nil {
		return errProgram
	}
	if p.answer == nil {
		p.answer = p.decide
	}
	p.before = append(p.before[:0], p.All...)
	p.now, p.program = now, a.Program
	err := a.Program.Run(p.answer)
	p.program = nil
	if err != nil {
		p.All, p.Changed = append(p.All[:0], p.before...), false
	}
	p.plan.Forget()
	return err
}

// Forget drops the references to the state.
func (p *Parts) Forget() {
	for _, all := range [...]*[]Part{&p.All, &p.before, &p.was} {
		clear((*all)[:cap(*all)])
		*all = (*all)[:0]
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
	n, ok := p.program.Number(a.Key)
	if !ok {
		return errNoPart
	}
	plan := &p.plan.Plan
	if err := plan.One(p.entry(n), p.now, a); err != nil {
		return err
	}
	if a.Family == Settle && a.Linked {
		return errNotOne
	}
	return p.apply(n)
}

// several decides a Several. With an error no part changes.
func (p *Parts) several(a *Ask) error {
	if err := p.number(a); err != nil {
		return err
	}
	entryOf := func(i int) *entry.Entry { return p.entry(p.numbers[i]) }
	err := p.plan.All(a, p.now, entryOf)
	if err != nil || !p.plan.Changes {
		return err
	}
	return p.applyAll(p.plan.Again)
}

// settle decides a SettleSeveral. With an error no part changes. The keys of a link belong to other states, so there may
// be none.
func (p *Parts) settle(a *Ask) error {
	if err := p.number(a); err != nil {
		return err
	}
	s, plan := &p.settles, &p.plan.Plan
	defer s.Forget()
	s.Start(a)
	s.Begin(p.now)
	for i, n := range p.numbers {
		s.Find(plan, i, p.entry(n))
	}
	if a.Linked = s.Linked(); a.Linked {
		return ErrLinked
	}
	for _, n := range p.numbers {
		s.Look(plan, p.entry(n))
	}
	if err := s.Check(); err != nil {
		return err
	}
	return p.applyAll(func(i int, e *entry.Entry) error { return s.Settle(plan, i, e) })
}

// number sets numbers to those of the clauses of a.
func (p *Parts) number(a *Ask) error {
	p.numbers = p.numbers[:0]
	for i := range a.Clauses {
		n, ok := p.program.Number(a.Clauses[i].Key)
		if !ok {
			return errNoPart
		}
		p.numbers = append(p.numbers, n)
	}
	return nil
}

// applyAll has decide set the plan for the part of each clause, and makes the changes. With an error no part changes.
func (p *Parts) applyAll(decide func(i int, e *entry.Entry) error) (err error) {
	changed := p.Changed
	p.was = append(p.was[:0], p.All...)
	for i, n := range p.numbers {
		if err = decide(i, p.entry(n)); err == nil {
			err = p.apply(n)
		}
		if err != nil {
			p.All, p.Changed = append(p.All[:0], p.was...), changed
			return err
		}
	}
	return nil
}

// find returns the index in All of the part with the number n, or of the first part after it.
func (p *Parts) find(n uint8) (i int, found bool) {
	return slices.BinarySearchFunc(p.All, n, func(is Part, n uint8) int { return cmp.Compare(is.Number, n) })
}

// entry returns the entry of the part with the number n, which is valid until a part changes.
func (p *Parts) entry(n uint8) *entry.Entry {
	if i, found := p.find(n); found {
		return &p.All[i].Entry
	}
	p.none = entry.Entry{}
	return &p.none
}

// apply makes the change of the plan in the part with the number n. With [limit.ErrTooLarge] it changes nothing.
func (p *Parts) apply(n uint8) error {
	plan := &p.plan.Plan
	i, found := p.find(n)
	switch {
	case plan.Action == Keep, plan.Action == Remove && !found:
		return nil
	case plan.Action == Remove:
		p.All, p.Changed = slices.Delete(p.All, i, i+1), true
		return nil
	}
	var old []byte
	grows := p.Each
	if found {
		old = p.All[i].Entry.Value
		grows = 0
	}
	value := plan.Apply(slices.Clone(old), nil) // other parts of the state, and the caller, still have old
	if grows += len(value) - len(old); grows > 0 && p.bytes()+grows > p.Most {
		p.TooLarge++
		return limit.ErrTooLarge
	}
	is := Part{n, entry.Entry{Kind: plan.Kind, Expiry: plan.Expiry, Value: value}}
	if p.Changed = true; found {
		p.All[i] = is
	} else {
		p.All = slices.Insert(p.All, i, is)
	}
	return nil
}

// bytes returns the number of bytes of all parts.
func (p *Parts) bytes() (n int) {
	for i := range p.All {
		n += p.Each + len(p.All[i].Entry.Value)
	}
	return n
}
