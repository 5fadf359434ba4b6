package server

import (
	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/command/policystore"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/policy/policyfile"
	"github.com/cellserver/cellserver/policy/registry"
)

// policies has the policies that the server stores. With the option store there are no policies,
// and registry is nil.
type policies struct {
	registry *registry.Registry
	file     *policyfile.File // nil if the option policy-file is not set
}

// openPolicies creates the registry of policies, and makes it observe the records that are loaded,
// replicated and changed by commands. With the option policy-file it also creates the policy file.
func (s *Server) openPolicies(o *env.Options) {
	r := registry.New(registry.Options{
		Failed: func(err error) { s.log.Error("a record of policies cannot be read", "error", err) },
		Missing: func(zone, policy string) {
			s.log.Warn("a policy has a time zone that this program's tzdata does not have: new windows follow UTC until a program with a newer release runs",
				"zone", zone, "policy", policy, "tzdata", calendar.Release())
		},
	})
	s.keyspace.ObserveSystem(r.Observe)
	s.policies.registry, o.Policies = r, r
	if path := s.config.Path("policy-file"); path != "" {
		s.policies.file = policyfile.New(path, r, s.config.PolicyBounds)
		o.PolicyFile = s.policies.file
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
// given halts.
func (s *Server) settlePoliciesUnless(halts uint32) {
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
