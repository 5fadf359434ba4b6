package remote

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
)

// policies implements policy: it chooses, by the prefix of the key, the answer to an ask that the
// engine does not decide.
type policies struct {
	rules atomic.Pointer[rules] // the rules in force; never nil
	now   func() limit.Instant
	// local decides an ask in a keyspace of this server. decideLocally first divides the limits in
	// the ask by n.
	local func(*decide.Ask)
	n     atomic.Int64
	// outages returns the number of times that the engine has become reachable again for a key.
	// When it increases, earlier local decisions about the key do not count any more.
	outages func(key []byte) int64

	answers sync.Map // the counter of each tally, as *atomic.Int64
}

// tally is the key of a counter of answers: the policy, and the reason why the engine has not
// decided.
type tally struct {
	policy string
	why    reason
}

// newPolicies returns the policies that o requires. now is the clock of the answers.
func newPolicies(o *Options, now func() limit.Instant, outages func(key []byte) int64) *policies {
	p := &policies{now: now, local: o.Local, outages: outages}
	p.n.Store(int64(o.Servers))
	p.set(o.FailPolicies)
	return p
}

// set replaces the policies by byPrefix. Any goroutine may call it.
func (p *policies) set(byPrefix map[string]string) {
	all := newRules(byPrefix, Closed)
	p.rules.Store(&all)
}

// of returns the policy for key: Closed, Opened or Local.
func (p *policies) of(key []byte) string { return p.rules.Load().of(key) }

// closed implements policy: it reports whether asks about key are answered with an error.
func (p *policies) closed(key []byte) bool { return p.of(key) == Closed }

// answer implements policy: it answers a by the policy for its keys. The answer is counted under
// the policy and the reason why.
func (p *policies) answer(a *decide.Ask, why reason) {
	policy := p.forAsk(a)
	p.count(policy, why)
	a.Now, a.Err = p.now(), nil
	switch policy {
	case Opened:
		admit(a)
	case Local:
		p.decideLocally(a)
	default:
		a.Err = decide.Unavailable("the store does not answer: " + string(why))
	}
}

// forAsk returns the policy for a: the strictest policy of its keys. Only the answers of limiters
// can be guessed, so an administrative ask, an ask for the number of a counter and a settlement get Closed.
func (p *policies) forAsk(a *decide.Ask) string {
	switch a.Family {
	case decide.Admin, decide.Counter, decide.Settle, decide.SettleSeveral:
		return Closed
	case decide.Joint:
		if !a.Program.Guessed() {
			return Closed
		}
	}
	strictest := Opened
	eachKey(a, func(key []byte) {
		switch is := p.of(key); {
		case is == Closed, is == Local && strictest != Closed:
			strictest = is
		}
	})
	return strictest
}

func (p *policies) count(policy string, why reason) {
	key := tally{policy, why}
	n, ok := p.answers.Load(key)
	if !ok {
		n, _ = p.answers.LoadOrStore(key, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

// PolicyCount is the number of asks that a policy has answered because of a reason. Policy is
// Closed, Opened or Local.
type PolicyCount struct {
	Policy, Reason string
	N              int64
}

// counts returns the numbers of answers, sorted by policy and reason.
func (p *policies) counts() []PolicyCount {
	var all []PolicyCount
	p.answers.Range(func(k, n any) bool {
		key := k.(tally)
		all = append(all, PolicyCount{key.policy, string(key.why), n.(*atomic.Int64).Load()})
		return true
	})
	slices.SortFunc(all, func(a, b PolicyCount) int {
		return cmp.Or(strings.Compare(a.Policy, b.Policy), strings.Compare(a.Reason, b.Reason))
	})
	return all
}

// anonymize removes the identity of a and makes it a call without reservation, because the engine cannot remember a
// call that it has not decided, and such a call cannot be settled.
func anonymize(a *decide.Ask) {
	a.ID, a.Reserve = idempotency.Call{}, reservation.Terms{}
	a.ResetAnswer()
}

// admit answers a as if its limiter had never been used, for any quantity. A limit that never
// admits anything remains in force: a is refused. No key counts as banned, no call is remembered,
// and a settlement does not find a reservation. Each ask of a Joint is admitted.
func admit(a *decide.Ask) {
	a.Refused, a.Missing = false, 0
	anonymize(a)
	a.Foreign = 0
	switch a.Family {
	case decide.Cell:
		admitCell(&a.Decision, a.Now, &a.Quota, a.Quantity)
	case decide.Window:
		a.Decision = admission(a.Window.Limit, a.Window.Quantity)
	case decide.Bucket:
		a.Decision = admission(a.Bucket.Capacity, a.Bucket.Quantity)
	case decide.Lease:
		a.Decision = admissionOfLease(&a.Lease)
	case decide.Several:
		for i := range a.Clauses {
			admitClause(&a.Details[i], a.Now, &a.Clauses[i])
			a.Refused = a.Refused || a.Details[i].Refused > 0
		}
		if a.Refused {
			a.Refuse()
		}
	case decide.Ban:
		a.Decision = unused(a.Bans.Refusals)
	case decide.Joint:
		a.Err = a.Program.Run(func(part *decide.Ask) {
			part.Now, part.Err = a.Now, nil
			admit(part)
		})
	}
}

// admitClause stores in d the answer that admits the clause c of an RL.MULTI.
func admitClause(d *limit.Decision, now limit.Instant, c *decide.Clause) {
	switch {
	case c.Unlimited:
		*d = unused(decide.Unlimited)
	case c.Quota != nil && c.Force && c.Quota.Limit() > 0:
		*d = unused(c.Quota.Limit())
	case c.Quota != nil:
		admitCell(d, now, c.Quota, c.Quantity)
	case c.Window != nil:
		*d = admission(c.Window.Limit, c.Window.Quantity)
	case c.Lease != nil && c.Lease.Peek: // a peek takes no lease, so it cannot refuse one
		*d = unused(c.Lease.Limit)
	case c.Lease != nil:
		*d = admissionOfLease(c.Lease)
	default:
		*d = admission(c.Bucket.Capacity, c.Bucket.Quantity)
	}
}

// admission returns the answer of an unused limiter with the limit most, which admits any quantity.
// If most is 0, it refuses a positive quantity.
func admission(most, quantity int64) limit.Decision {
	d := unused(most)
	if most == 0 && quantity > 0 {
		d.Refused = 1
	}
	return d
}

// admissionOfLease returns the answer that admits l. Only a call for a new lease can be refused.
func admissionOfLease(l *concurrency.Call) limit.Decision {
	if l.Op != concurrency.Acquire {
		return unused(l.Limit)
	}
	return admission(l.Limit, 1)
}

// unused returns the answer of a limiter with the limit most that was never used.
func unused(most int64) limit.Decision {
	return limit.Decision{Limit: most, Remaining: most, RetryAfter: limit.NoRetry}
}

// admitCell stores in d the answer that admits quantity. If the quota q never admits anything, d is
// the quota's own decision.
func admitCell(d *limit.Decision, now limit.Instant, q *gcra.Quota, quantity int64) {
	if gcra.DecideInto(d, 0, now, q, 1); d.Refused > 0 {
		gcra.DecideInto(d, 0, now, q, quantity)
		return
	}
	*d = unused(q.Limit())
}

// decideLocally decides a in the keyspace of this server, with this server's share of the limits. A
// call about a lease that its member holds already is never refused, because this server does not
// know the leases in the engine. Each ask of a Joint is decided in this way.
func (p *policies) decideLocally(a *decide.Ask) {
	if a.Family == decide.Joint {
		a.Err = a.Program.Run(p.decideLocally)
		return
	}
	anonymize(a)
	mine, n := *a, p.n.Load()
	mine.Key, mine.Next, mine.Keep = p.keyOf(a.Key), nil, shareKept(a.Keep, n)
	switch a.Family {
	case decide.Cell:
		mine.Quota = a.Quota.Share(n)
	case decide.Window:
		shareWindow(&mine.Window, n)
	case decide.Bucket, decide.Cancel:
		shareBucket(&mine.Bucket, n)
	case decide.Lease:
		mine.Lease.Limit = share(a.Lease.Limit, n)
	case decide.Several:
		mine.Clauses = shareClauses(a.Clauses, n)
		for i := range mine.Clauses {
			mine.Clauses[i].Key = p.keyOf(mine.Clauses[i].Key)
		}
	}
	p.local(&mine)
	a.Now, a.Decision, a.Refused, a.Missing, a.Err = mine.Now, mine.Decision, mine.Refused, mine.Missing, mine.Err
	a.Foreign = mine.Foreign
	// The lease of a holder is in the engine. This server does not know the lease, and must not
	// deny the holder because of that.
	if a.Family == decide.Lease && a.Lease.Op != concurrency.Acquire && a.Err == nil {
		a.Decision.Refused = 0
	}
}

// keyOf returns the local key for decisions about key during the present outage of the engine. It
// differs from outage to outage, so that earlier local decisions no longer count.
func (p *policies) keyOf(key []byte) []byte {
	outage := uint32(p.outages(key))
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(key)), outage), key...)
}
