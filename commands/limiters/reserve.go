package limiters

import (
	"errors"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
)

// settleCommands returns the commands that end or extend reservations. They need no memory, so they
// have no [command.FlagDenyOOM]. Their replies are no decisions.
func settleCommands() []*command.Command {
	const flags = command.FlagWrite | command.FlagFast | command.FlagMovableKeys
	return command.Entries(command.Defaults{
		Categories: command.CatRateLimit, Group: "ratelimit",
		Since: "1.0.0", Complexity: "O(N) of the live reservations of the key",
	}, []*command.Command{
		{
			Name: "rl.commit", Arity: -4, Flags: flags, Keys: settledKeys(5),
			Summary: "Ends a reservation: it counts as if its call had taken actual units.", Syntax: "key id actual [actual ...] [POLICY policy]",
			Reply: "1 if it was settled, 2 if its time had passed and actual was charged now, 0 if it was settled before, -1 if it is unknown",
			Parse: askCommit, Answer: answerSettled,
		},
		{
			Name: "rl.cancel", Arity: -3, Flags: flags, Keys: settledKeys(4),
			Summary: "Ends a reservation: it counts as if its call had never been made.", Syntax: "key id [POLICY policy]",
			Reply: "1 if it was cancelled, 0 if it had ended before, -1 if it is unknown", Parse: askCancel, Answer: answerSettled,
		},
		{
			Name: "rl.renew", Arity: -4, Flags: flags, Keys: settledKeys(5),
			Summary: "Sets a new time to live for a reservation.", Syntax: "key id ttl [MS] [POLICY policy]",
			Reply: "1 if the reservation is live, 0 if not", Parse: askRenewal, Answer: answerSettled,
		},
	})
}

// settledKeys returns the keys of a command that settles: its first argument or, with POLICY, the state
// keys of that policy. last is the least index of the policy's name.
func settledKeys(last int) command.KeySpec {
	keys := command.OneKey
	keys.Derived = &command.DerivedKey{Append: appendSettledKey, Last: last, Option: "POLICY", Extra: extraBytes}
	return keys
}

// appendSettledKey appends the state key of the first clause for the policy args[at] and the key args[1].
func appendSettledKey(dst []byte, args [][]byte, at int) []byte {
	return policy.AppendStateKey(dst, args[at], args[1], 1, false)
}

func askCommit(c *command.Call) resp.Error { return askSettle(c, clause.Commit) }

func askCancel(c *command.Call) resp.Error { return askSettle(c, clause.CancelReservation) }

func askRenewal(c *command.Call) resp.Error { return askSettle(c, clause.RenewReservation) }

// parseSettlement parses the arguments of a command that settles, of which the second is the id of the
// reservation. policy is the argument of POLICY.
type parseSettlement func(args [][]byte, room []int64, s *reservation.Settlement) (policy []byte, err resp.Error)

// askSettle is the Parse function of the commands that settle.
func askSettle(c *command.Call, parse parseSettlement) resp.Error {
	a, s := c.NewAsk(decide.Settle, c.Args[1]), command.Scratch[scratch](c)
	name, err := parse(c.Args[1:], s.quantities[:], &a.Settlement)
	if err != "" {
		return c.WithUsage(err)
	}
	a.ID = identity(c, c.Args[2])
	a.Window.LogMaxEntries = c.Server.Limits().LogMaxEntries // for a window that is charged beyond the reserved units
	if name == nil {
		return ""
	}
	service := command.ServerState[ratelimit.Service](c)
	p := service.Policy(name)
	of := s.settled.stateOf(p, c.Args[1], c.Store.Now())
	if c.Collector != nil {
		// A deleted policy is no error. But the form of the keys is unknown until the policies have
		// been read from the store.
		if err := service.NoPolicy(); p == nil && !errors.Is(err, ratelimit.ErrNoPolicy) {
			return command.StoreError(err)
		}
		ratelimit.Settle(a, name, of)
		return ""
	}
	a.Family, a.Key, a.Clauses = decide.SettleSeveral, nil, s.settled.of(name, of)
	return ""
}

// settledClauses is the memory for the clauses of a [decide.SettleSeveral]. The next call of the worker
// reuses it.
type settledClauses struct {
	keys    []byte
	clauses [policy.MaxClauses]decide.Clause // the clauses, each with one of keys
	network []byte
}

// stateOf returns the network that has the state of key at now if the keys of p are addresses. It returns key itself if
// they are not or if p is nil. It also returns key itself if key is no address for p, because the policy may have had
// another form of keys when the reservation was made. In that case the caller has to give the key as it is in the state
// key.
func (m *settledClauses) stateOf(p *policy.Policy, key []byte, now limit.Instant) []byte {
	if p == nil || !p.Main.Key.IP {
		return key
	}
	network, err := ratelimit.AppendStateOf(m.network[:0], p, key, now)
	if err != nil {
		return key
	}
	m.network = network
	return network
}

// of returns the clauses that may hold a part of a reservation for key under the policy called name. Only the keys of
// the clauses are set. Their number is the maximum for a policy, because the policy may have been changed or deleted
// since the reservation was made.
func (m *settledClauses) of(name, key []byte) []decide.Clause {
	if n := len(m.clauses) * (len(name) + len(key) + extraBytes); cap(m.keys) < n {
		m.keys = make([]byte, 0, n)
	}
	m.keys = m.keys[:0]
	for i := range m.clauses {
		from := len(m.keys)
		m.keys = policy.AppendStateKey(m.keys, name, key, i+1, false)
		m.clauses[i].Key = m.keys[from:len(m.keys):len(m.keys)]
	}
	return m.clauses[:]
}

// keptSettledKeys is the maximum size, in bytes, of the keys that a worker keeps after a batch.
const keptSettledKeys = 64 << 10

// trim frees the keys of a batch if they are long.
func (m *settledClauses) trim() {
	if cap(m.keys) > keptSettledKeys {
		*m = settledClauses{}
	}
}

// answerSettled counts the settlement a and replies with its outcome. The reply of RL.RENEW is the
// same for an unknown reservation and for one that has ended.
func answerSettled(c *command.Call, a *decide.Ask) {
	if a.Family == decide.Joint {
		if a.Err != nil {
			c.Fail(command.StoreError(a.Err))
			return
		}
		s := a.Program.(*ratelimit.Settling)
		a = &s.Ask
		countEstimate(c, a, s.Policy())
	} else if a.Family == decide.SettleSeveral {
		countEstimate(c, a, c.Args[c.Cmd.Keys.FirstDerived(c.Args)])
	}
	command.Scratch[scratch](c).recorder.NoteSettled(a)
	if a.Settlement.Op == reservation.Renew {
		a.Settled = max(a.Settled, reservation.Before)
	}
	c.W.Int(int64(a.Settled))
}

// countEstimate adds the estimate and the actual quantity of the commit a to the counters of the policy called name, if
// there is one.
func countEstimate(c *command.Call, a *decide.Ask, name []byte) {
	if a.Estimated == 0 {
		return
	}
	if p := command.ServerState[ratelimit.Service](c).Policy(name); p != nil {
		p.Counts.Settled(a.Estimated, a.Used)
	}
}

// decideApart has st decide a for a client of s, without counting the decision. It counts the
// reservations that have ended.
func decideApart(st ratelimit.Store, s *command.Server, a *decide.Ask) {
	a.Lapsed, a.Ends = 0, 0
	if st.Decide(a); a.Err == nil && a.Lapsed > 0 {
		command.Find[ratelimit.Service](s).Keys.NoteLapsed(a.Lapsed)
		a.Lapsed = 0 // Lapsed is counted already; a later decision on a may be counted too
	}
}
