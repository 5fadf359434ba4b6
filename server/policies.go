package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/policyfile"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/records"
)

// policies has the policies of the server. With the option store their records are in the store.
type policies struct {
	registry *registry.Registry
	file     *policyfile.File // the policy file; nil if the option policy-file is not set
	// records has the records of policies; nil without the option store. clock is the clock of the
	// store.
	records *records.Store
	clock   func() limit.Instant
	// read is closed, by firstRead, when the records were read for the first time.
	read      chan struct{}
	firstRead sync.Once
	// fault is the reason why the latest attempt to follow the records has failed; nil or "" if it
	// was successful.
	fault atomic.Pointer[string]
	// forbidden says that, at the latest attempt, the user of the store was not permitted to read
	// the records.
	forbidden atomic.Bool
	overdue   atomic.Bool // whether the time readyWithout has passed since the start
}

// why returns the fault, or "".
func (p *policies) why() string {
	if is := p.fault.Load(); is != nil {
		return *is
	}
	return ""
}

// age returns the time since the store has confirmed that the server has its policies. known is false before the policies
// were read, and without the option store.
func (p *policies) age() (age time.Duration, known bool) {
	if p.records == nil || p.records.Unread() != nil {
		return 0, false
	}
	return p.records.Age(p.clock()), true
}

// followPeriod is the time between two questions to the store whether other servers have changed policies.
const followPeriod = time.Second

// openPolicies creates the registry of policies, and makes it observe the records that are loaded,
// replicated and changed by commands. With the option policy-file it also creates the policy file.
func (s *Server) openPolicies(o *env.Options) {
	r := s.newRegistry(o, nil)
	s.keyspace.ObserveSystem(r.Observe)
	if path := s.config.Path("policy-file"); path != "" {
		s.usePolicyFile(o, policyfile.New(path, r, s.config.PolicyBounds))
	}
}

// usePolicyFile makes f the policy file of the server.
func (s *Server) usePolicyFile(o *env.Options, f *policyfile.File) {
	s.policies.file, o.PolicyFile = f, f
}

// openSharedPolicies creates the registry of policies on a server with the option store, which has the records. now is
// the clock of the store. With the option policy-file it also creates the policy file, whose entries hide records of
// the same name.
func (s *Server) openSharedPolicies(o *env.Options, now func() limit.Instant) {
	r := s.newRegistry(o, s.readableByAll)
	if path := s.config.Path("policy-file"); path != "" {
		s.usePolicyFile(o, policyfile.NewOverlay(path, r, s.config.PolicyBounds, now))
	}
	shared := records.New(records.Options{Engine: s.remote, Observer: r, Now: now, Moved: s.policiesMoved, Log: s.log})
	s.policies.records, s.policies.clock, s.policies.read = shared, now, make(chan struct{})
	o.PoliciesUnread, o.PoliciesStale, o.PolicyUnreadable, o.SyncPolicies = shared.Unread, s.policies.stale, s.policyUnreadable, s.syncPolicies
	o.ChangePolicies = func(f func(st registry.Store)) (confirm func() error) {
		st := shared.Changing()
		f(st)
		return st.Confirm
	}
}

// newRegistry creates the registry of policies. readable becomes its option Readable.
func (s *Server) newRegistry(o *env.Options, readable func(level int) error) *registry.Registry {
	s.openRules()
	r := registry.New(registry.Options{
		Readable: readable,
		Failed:   func(err error) { s.log.Error("a record of policies cannot be read", "error", err) },
		Missing: func(zone, policy string) {
			s.log.Warn("a policy has a time zone that this program's tzdata does not have: new windows follow UTC until a program with a newer release runs",
				"zone", zone, "policy", policy, "tzdata", calendar.Release())
		},
		Shared: s.config.Remote(),
		Rules:  len(s.rules) > 0,
		Unfit: func(n int) {
			s.log.Warn("entries of policies in the store are not in force: their patterns are no networks, and the keys of the policy are addresses (KEY IP)",
				"entries", n)
		},
	})
	s.policies.registry, o.Policies = r, r
	if len(s.rules) > 0 {
		o.ReloadRules = s.reloadRules
	}
	for _, f := range s.rules {
		o.RuleFiles = append(o.RuleFiles, env.RuleFiles{Figures: f.figures[:], Field: f.field, Fault: func() string { return f.fault.Load().String() }})
	}
	return r
}

// firstRead is the maximum time for which a server that starts waits for the policies of the store before it says that it
// is ready, and firstPeriod the time between two attempts until they are read.
const (
	firstRead   = time.Second
	firstPeriod = 50 * time.Millisecond
)

// awaitPolicies waits until followPolicies has read the policies of the store, for firstRead at most.
func (s *Server) awaitPolicies() {
	if s.policies.records == nil {
		return
	}
	select {
	case <-s.policies.read:
	case <-time.After(firstRead):
	}
}

// followPolicies applies the changes that other servers make to the policies in the store, until ctx ends. It does
// nothing without the option store.
func (s *Server) followPolicies(ctx context.Context) {
	if s.policies.records == nil {
		return
	}
	next := time.NewTimer(0)
	defer next.Stop()
	w, end := s.policies.listen(ctx)
	defer end()
	defer time.AfterFunc(readyWithout, func() { s.policies.overdue.Store(true) }).Stop()
	told := "" // the error that was logged last; "" if the policies were read since then
	for tries := 0; w.wait(ctx, next); tries++ {
		_, err := s.policies.records.Follow(ctx)
		w.calm.Reset(followGap)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		s.policies.fault.Store(&fault)
		s.policies.forbidden.Store(records.Forbidden(err))
		unread := s.policies.records.Unread() != nil
		period := followPeriod
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && told != "":
			s.log.Info("the policies of the store are read again")
			told = ""
		case fault == told:
		case unread && tries < int(firstRead/firstPeriod): // a server that has just started is not connected at once
			period = firstPeriod
		case unread:
			s.log.Warn("the policies of the store cannot be read: calls under policies get -UNAVAILABLE", "error", err)
			told = fault
		default:
			s.log.Warn("the policies of the store cannot be read: the server decides by those that it has", "error", err)
			told = fault
		}
		if !unread {
			s.policies.firstRead.Do(func() { close(s.policies.read) })
		}
		next.Reset(period)
	}
}

// preparePolicies is a [config.Prepare]. It reads the policy file, and returns a function apply
// that stores its content and calls settlePolicies. apply is nil if the option policy-file is not
// set.
func (s *Server) preparePolicies(*config.Config) (apply func(), err error) {
	return s.policies.file.Prepare(s.settlePolicies)
}

// settlePolicies applies the policy file, if there is one. It does nothing on a replica or while
// the server is loading. When the server becomes a primary or has loaded, the policy file is
// applied then.
func (s *Server) settlePolicies() { s.settlePoliciesUnless(command.HaltReadOnly | command.HaltLoading) }

// settlePoliciesUnless applies the policy file, if there is one, unless the engine has one of the
// given halts. With the option store it applies the file at once, which needs no store.
func (s *Server) settlePoliciesUnless(halts uint32) {
	if s.policies.file != nil && s.policies.records != nil {
		s.policies.file.Settle(nil, s.log)
		return
	}
	if s.policies.file != nil && s.engine.Halts.Load()&halts == 0 {
		s.engine.WithStore(0, func(st env.Store) {
			policystore.Outside(st.(policystore.Backing), &s.engine.Server, func(st registry.Store) { s.policies.file.Settle(st, s.log) })
		})
	}
}

// warnOfHistory logs a warning if the loaded history has changes of policies that this version
// cannot read.
func (s *Server) warnOfHistory() {
	if n, why := s.policies.registry.Unreadable(); n > 0 {
		s.log.Warn("changes of policies that this version cannot read are left out of RL.CHANGES", "changes", n, "error", why)
	}
}
