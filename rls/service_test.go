package rls_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/stats"
)

const start = limit.Instant(1_700_000_000e9)

// service is the rate limit service without a protocol: it decides the charges of plans by the decider of all
// fronts, on a keyspace in memory.
type service struct {
	config  *rls.Config
	options rls.Options
	clock   *clocktest.Clock
	store   *keyspace.Handle
	decider *ratelimit.Decider
	builder *policy.Builder
	table   *policy.Table

	plan      rls.Plan
	decisions []rls.Decision
	answer    rls.Answer
	lookup    ratelimit.Lookup
	ask       decide.Ask
	own       map[rls.Window]*policy.Limits
}

func (s *service) Table() *policy.Table { return s.table }

func (s *service) Volatile() bool     { return false }
func (s *service) Now() limit.Instant { return s.store.Now() }

func (s *service) Describe(d *hotkeys.Detail, _ decide.Family) {
	d.Client, d.Command = 1, "ShouldRateLimit"
	d.EndLimit()
}

// open returns a service with the rules of c and further entries of policies.
func open(t testing.TB, c *rls.Config, o rls.Options, entries ...*policy.Entry) *service {
	t.Helper()
	s := &service{own: map[rls.Window]*policy.Limits{}, config: c, options: o, clock: clocktest.New(start), builder: policy.NewBuilder(policy.Sizes{Policies: rls.MaxRules})}
	for _, r := range c.Rules() {
		require.NoError(t, s.builder.Set(r.Entry()))
	}
	for _, e := range entries {
		require.NoError(t, s.builder.Set(e))
	}
	s.table = s.builder.Table()
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

// call answers r. The answer is valid until the next call.
func (s *service) call(r *rls.Request) (*rls.Answer, error) {
	if err := s.config.Plan(r, &s.plan); err != nil {
		return nil, err
	}
	s.store.Refresh()
	if s.options.Together {
		if err := s.decide(ratelimit.Peek); err != nil {
			return nil, err
		}
		s.plan.Together(s.decisions)
	}
	if err := s.decide(ratelimit.Whole); err != nil {
		return nil, err
	}
	s.plan.Answer(s.options, s.decisions, s.store.Now(), &s.answer)
	s.decider.EndBatch(s.store.Now())
	return &s.answer, nil
}

// decide decides the charges of the plan, in the mode m.
func (s *service) decide(m ratelimit.Mode) error {
	s.decisions = s.decisions[:0]
	for i := range s.plan.Charges {
		c := &s.plan.Charges[i]
		s.lookup.Call = ratelimit.Call{Policy: c.Policy, Key: c.Key, Quantity: c.Hits, Mode: m, Now: s.store.Now(), From: s}
		if c.Own.Seconds > 0 {
			if s.own[c.Own] == nil {
				s.own[c.Own] = policy.FixedWindow(c.Own.Most, c.Own.Seconds)
			}
			s.lookup.Own = s.own[c.Own]
		}
		if c.Note && m == ratelimit.Whole {
			s.lookup.Mode = ratelimit.Force
		}
		if err := s.decider.Find(&s.lookup); err != nil {
			return err
		}
		a, err := s.decider.Decide(&s.lookup, &s.ask)
		if err != nil {
			return err
		}
		of := a.Decision
		if len(a.Details) > 0 {
			of = &a.Details[0]
		}
		s.decisions = append(s.decisions, rls.Decision{
			Denied: a.Decision.Refused > 0, Over: of.Refused > 0, Limit: a.Decision.Limit, Remaining: a.Decision.Remaining, Reset: a.Decision.ResetAfter,
		})
	}
	return nil
}
