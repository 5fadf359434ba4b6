package ratelimit

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy"
)

// Settling is the program that settles a reservation of a key under a policy, in a store that other servers share.
type Settling struct {
	state
	// Ask is the settlement, of family [decide.SettleSeveral], with its answer.
	Ask decide.Ask

	clauses [policy.MaxClauses]decide.Clause
	// further has the keys of the states of the other policies that hold a part of the reservation.
	further [][]byte
}

// Settle turns a, a settlement, into an ask of family [decide.Joint] that settles the same reservation of a key under
// the policy called name. The policy need not exist any more. of is the part of the state keys after the policy: see
// [AppendStateOf]. The program of a, a [Settling], has the answer. It owns its bytes.
func Settle(a *decide.Ask, name, of []byte) {
	s := &Settling{state: state{bytes.Clone(name), bytes.Clone(of)}, Ask: *a}
	s.Ask.Own(nil)
	for i := range s.clauses {
		s.clauses[i].Key = policy.AppendStateKey(nil, s.policy, s.of, i+1, false)
	}
	s.Ask.Family, s.Ask.Key, s.Ask.Clauses = decide.SettleSeveral, nil, s.clauses[:]
	a.Forget()
	s.into(a, s.Ask.DB, s)
}

// Policy returns the name of the policy.
func (s *Settling) Policy() []byte { return s.policy }

// Run settles the reservation: see [decide.Program].
func (s *Settling) Run(decideOn func(*decide.Ask)) error {
	s.Ask.Err, s.further = nil, s.further[:0]
	decideOn(&s.Ask)
	return s.Ask.Err
}

// Guessed implements [decide.Program]: only the store knows the reservations.
func (*Settling) Guessed() bool { return false }

// Frees returns true, because a settlement may make room: see [decide.Freeing].
func (*Settling) Frees() bool { return true }

// Reach notes that the run needs the states of keys: see [decide.Reaching].
func (s *Settling) Reach(keys [][]byte) {
	s.further = s.further[:0]
	for _, key := range keys {
		if _, _, ok := s.Locate(key); ok {
			continue
		}
		of, _ := stateOf(key)
		s.further = append(s.further, of)
	}
}

// States returns the keys of the other states: see [decide.Reaching].
func (s *Settling) States() [][]byte { return s.further }

// Locate implements [decide.Spanning].
func (s *Settling) Locate(key []byte) (state int, n uint8, ok bool) {
	if n, ok = s.Number(key); ok {
		return 0, n, true
	}
	of, n := stateOf(key)
	state = 1 + slices.IndexFunc(s.further, func(is []byte) bool { return bytes.Equal(is, of) })
	return state, n, state > 0
}

// stateOf returns the key of the state that has the part with the given key, and the number of the part. A key without
// a policy, as in a reservation of RL.MULTI, is the key of a state with one part.
func stateOf(key []byte) (state []byte, n uint8) {
	name, of, n, ok := policy.ParseState(key)
	if !ok {
		return bytes.Clone(key), 1
	}
	return policy.AppendStateKey(nil, name, of, 1, false), n
}

var _ decide.Reaching = (*Settling)(nil)
