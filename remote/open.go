package remote

import (
	"context"
	"time"

	"github.com/cellserver/cellserver/limit"
	store "github.com/cellserver/cellserver/remote/engine"
)

// Open opens the store that o.URL names. It does not wait for the engine: until the engine
// answers, the policies answer asks. The error says which option is invalid. The caller must call
// [Store.Close].
func Open(o Options) (*Store, error) {
	at, err := o.complete()
	if err != nil {
		return nil, err
	}
	var e *store.Engine
	t := newRealTime(func() limit.Instant { return e.Now() })
	if e, err = store.Open(store.Options{
		Address: at, Prefix: o.Prefix, Hidden: o.Hidden, MaxValue: max(2*o.MaxValue, 1<<20), Timeout: o.Timeout, MaxSkew: o.MaxSkew, Elapsed: t.Elapsed, Log: o.Log,
	}); err != nil {
		return nil, err
	}
	p := newPolicies(&o, e.Now, e.Outages)
	// The prefix in the limits stays empty, because the engine adds o.Prefix.
	s := newStore(e, t, p, limits{
		hidden: o.Hidden, timeout: o.Timeout, denials: o.DenialCache, maxValue: o.MaxValue,
		refuseAcross: o.MultiAcross == "refuse", lease: o.HotLease, leased: o.leased(),
	})
	s.overall = allKeys{e, t}
	s.opened = opened{e, p}
	return s, nil
}

// Info describes the store. The store must come from [Open]. Any goroutine may call Info.
func (s *Store) Info() Info {
	return infoOf(&s.count, s.opened.engine.Info(), s.opened.policies.counts())
}

// SetFailPolicies replaces the policies for asks that the engine does not decide: see
// [Options.FailPolicies]. The values of byPrefix must be Closed, Opened or Local. The store must
// come from [Open]. Any goroutine may call SetFailPolicies, also while the engine is unreachable.
func (s *Store) SetFailPolicies(byPrefix map[string]string) { s.opened.policies.set(byPrefix) }

// SetServers replaces the number of servers that share the limits: see [Options.Servers]. n is at least 1. The store must
// come from [Open]. Any goroutine may call SetServers.
func (s *Store) SetServers(n int) { s.opened.policies.n.Store(int64(n)) }

// Eval runs a script of Lua in the engine, and waits for the reply. The arguments and results are
// those of [store.Engine.Eval]. The store must come from [Open]. Any goroutine may call Eval.
func (s *Store) Eval(ctx context.Context, script string, keys, args []string) (reply any, err error) {
	return s.opened.engine.Eval(ctx, script, keys, args)
}

// Listen subscribes to a channel of the engine. The arguments have the same meaning as in [store.Engine.Listen]. The
// store must come from [Open]. Any goroutine may call Listen.
func (s *Store) Listen(ctx context.Context, channel string, heard func(err error)) {
	s.opened.engine.Listen(ctx, channel, heard)
}

// Confirm runs a script in the engine and waits for a replica. The arguments and results are those of
// [store.Engine.Confirm]. The store must come from [Open]. Any goroutine may call Confirm.
func (s *Store) Confirm(ctx context.Context, script string, keys, args []string, d time.Duration) (store.Confirmed, error) {
	return s.opened.engine.Confirm(ctx, script, keys, args, d)
}

// Close ends the store and its connections. Asks that were submitted before are answered.
func (s *Store) Close() { s.opened.engine.Close() }
