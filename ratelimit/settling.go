package ratelimit

import (
	"bytes"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy"
)

// Settling is the program of a settlement of what was reserved for a key under a policy, for a store that other servers
// share.
type Settling struct {
	state
	// Ask is the settlement, of family [decide.SettleSeveral], with its answer.
	Ask decide.Ask

	clauses [policy.MaxClauses]decide.Clause
}

// Settle makes a, which is a settlement, an ask of family [decide.Joint] for the same settlement of what was reserved for a
// key under the policy called name. There need not be such a policy any more. of is what the keys of the state are made of:
// see [AppendStateOf]. The program of a, a [Settling], has the answer. It owns its bytes.
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

// Run implements [decide.Program].
func (s *Settling) Run(decideOn func(*decide.Ask)) error {
	s.Ask.Err = nil
	decideOn(&s.Ask)
	return s.Ask.Err
}

// Guessed implements [decide.Program]: only the store knows the reservations.
func (*Settling) Guessed() bool { return false }
