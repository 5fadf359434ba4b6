package limitador_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/stats"
)

const start = limit.Instant(1_700_000_000e9)

// service is Limitador without a protocol: it decides the calls of plans by the decider of all fronts, on a keyspace
// in memory.
type service struct {
	config  *limitador.Config
	clock   *clocktest.Clock
	store   *keyspace.Handle
	decider *ratelimit.Decider
	table   *policy.Table

	plan      limitador.Plan
	parts     []ratelimit.Part
	decisions []limitador.Decision
	answer    limitador.Answer
	ask       decide.Ask
}

func (s *service) Table() *policy.Table { return s.table }

func (s *service) Volatile() bool     { return false }
func (s *service) Now() limit.Instant { return s.store.Now() }

func (s *service) Describe(d *hotkeys.Detail, _ decide.Family) {
	d.Client, d.Command = 1, "ShouldRateLimit"
	d.EndLimit()
}

// open returns a service with the limits of c and further entries of policies.
func open(t testing.TB, c *limitador.Config, entries ...*policy.Entry) *service {
	t.Helper()
	s := &service{config: c, clock: clocktest.New(start)}
	b := policy.NewBuilder(policy.Sizes{Policies: limitador.MaxLimits})
	for _, is := range c.Limits() {
		require.NoError(t, b.Set(is.Entry()))
	}
	for _, e := range entries {
		require.NoError(t, b.Set(e))
	}
	s.table = b.Table()
	ks := keyspace.New(keyspace.Options{Clock: s.clock})
	t.Cleanup(ks.Close)
	s.store = ks.NewHandle()
	t.Cleanup(s.store.Close)
	s.store.Refresh()
	each := func(do func(*hotkeys.Recorder)) limit.Instant {
		do(s.decider.Recorder)
		return start
	}
	s.decider = (&ratelimit.Service{
		Policies: s,
		Bounds:   func() policy.Bounds { return policy.Bounds{LogMaxEntries: 100, MaxMembers: 100} },
		Keys:     hotkeys.New(stats.GroupOptions{Delimiter: ":", Max: 10}, each, func(int64) {}),
	}).NewDecider(s.store)
	return s
}

// call answers r, whose calls are decided in the mode m. The answer is valid until the next call.
func (s *service) call(t testing.TB, r *limitador.Request, m ratelimit.Mode) *limitador.Answer {
	t.Helper()
	require.NoError(t, s.config.Plan(r, &s.plan))
	s.store.Refresh()
	s.parts, s.decisions = s.parts[:0], s.decisions[:0]
	for i := range s.plan.Calls {
		c := &s.plan.Calls[i]
		s.parts = append(s.parts, ratelimit.Part{Lookup: ratelimit.Lookup{Call: ratelimit.Call{Policy: c.Policy, Key: c.Key, Quantity: s.plan.Delta, Mode: m, Now: s.store.Now(), From: s}}})
	}
	switch {
	case len(s.parts) == 0:
	case m == ratelimit.Force:
		for i := range s.parts {
			l := &s.parts[i].Lookup
			require.NoError(t, s.decider.Find(l))
			_, err := s.decider.Decide(l, &s.ask)
			require.NoError(t, err)
		}
	default:
		_, err := s.decider.FindAll(s.parts)
		require.NoError(t, err)
		_, _, err = s.decider.All(s.parts, &s.ask)
		require.NoError(t, err)
	}
	for i := range s.parts {
		p := &s.parts[i]
		if p.Details == nil {
			s.decisions = append(s.decisions, limitador.Decision{Untried: true})
			continue
		}
		d := &p.Details[0]
		s.decisions = append(s.decisions, limitador.Decision{
			Denied: d.Refused > 0 && !p.Lenient(), Limit: d.Limit, Remaining: d.Remaining, Reset: d.ResetAfter,
		})
	}
	s.plan.Answer(s.decisions, m == ratelimit.Whole, &s.answer)
	s.decider.EndBatch(s.store.Now())
	return &s.answer
}
