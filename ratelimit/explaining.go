package ratelimit

import (
	"bytes"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy"
)

// ExplainJoint makes a an ask of family [decide.Joint] that does what [Decider.Explain] does, for a call whose state is
// in a store that other servers share. After a was decided, [ExplanationOf] has the explanation. It returns the errors
// of [Decider.FindShared].
func (d *Decider) ExplainJoint(call Call, a *decide.Ask) (l Lookup, err error) {
	l.Call = call
	if err := d.FindShared(&l); err != nil {
		return l, err
	}
	x := &explaining{state: newState(&l)}
	x.Call = call
	x.Policy, x.Key, x.StateKey = bytes.Clone(call.Policy), bytes.Clone(call.Key), nil
	x.Class, x.Quantities = bytes.Clone(call.Class), append([]int64(nil), call.Quantities...)
	x.Volatile = false
	x.decider = &Decider{steps: steps{service: d.service}}
	x.into(a, call.DB, x)
	return l, nil
}

// ExplanationOf returns the explanation in a, a decided ask of [Decider.ExplainJoint]. If a.Err is not nil, only its
// Lookup is set.
func ExplanationOf(a *decide.Ask) *Explanation { return &a.Program.(*explaining).explanation }

// explaining is the program of one explanation.
type explaining struct {
	state
	Call
	decider     *Decider
	explanation Explanation
}

// Run makes the asks of the explanation: see [decide.Program].
func (x *explaining) Run(decide func(*decide.Ask)) (err error) {
	x.decider.store = asking(decide)
	x.explanation, err = x.decider.Explain(x.Call)
	return err
}

// Guessed implements [decide.Program]: an explanation cannot be guessed, because only the store has
// the states.
func (*explaining) Guessed() bool { return false }

// state names the state of a key under a policy on which a program runs.
type state struct{ policy, of []byte }

// newState returns the state of the call that l has looked up, with copies of the bytes.
func newState(l *Lookup) state { return state{bytes.Clone(l.Policy), bytes.Clone(l.state())} }

// Number implements [decide.Program].
func (s *state) Number(key []byte) (n uint8, ok bool) { return policy.StateNumber(key, s.policy, s.of) }

// into makes a an ask of p, a program of the state, in the database db.
func (s *state) into(a *decide.Ask, db int, p decide.Program) {
	a.DB, a.Family, a.Program, a.Err, a.Next = db, decide.Joint, p, nil, nil
	a.Key = s.key()
}

// key returns the key of the state, which is the key of the first clause.
func (s *state) key() []byte { return policy.AppendStateKey(nil, s.policy, s.of, 1, false) }

// Forgetting is the program that deletes the states of a key under a policy, in a store that other servers share.
type Forgetting struct {
	state
	onlyBans bool // whether only bans are deleted
	// Removed is the number of deleted states.
	Removed int64
}

// Forget makes a an ask of family [decide.Joint] that deletes the bans of a key under the policy called name and,
// unless onlyBans is true, the states of all clauses that the policy and its candidate may have. of is the part of the
// state keys after the policy: see [AppendStateOf]. The program of a has the result. It owns its bytes.
func Forget(a *decide.Ask, db int, name, of []byte, onlyBans bool) *Forgetting {
	f := &Forgetting{state: state{bytes.Clone(name), bytes.Clone(of)}, onlyBans: onlyBans}
	f.into(a, db, f)
	return f
}

// Run deletes the states of the key: see [decide.Program].
func (f *Forgetting) Run(decideOn func(*decide.Ask)) (err error) {
	f.Removed = 0
	remove := func(key []byte) {
		if err != nil {
			return
		}
		a := decide.Ask{Key: key, Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Delete}}
		if decideOn(&a); a.Err != nil {
			err = a.Err
		} else if a.Result.Done {
			f.Removed++
		}
	}
	for _, candidate := range [...]bool{false, true} {
		for i := 1; i <= policy.MaxClauses && !f.onlyBans; i++ {
			remove(policy.AppendStateKey(nil, f.policy, f.of, i, candidate))
		}
		remove(policy.AppendBanKey(nil, f.policy, f.of, candidate))
	}
	return err
}

// Guessed implements [decide.Program]: without an answer of the store nothing is deleted, so there is no result to
// guess.
func (*Forgetting) Guessed() bool { return false }
