package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/ruledir"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// rules are those of the files that the option rls-config names.
type rules struct {
	mu sync.Mutex // a load is in progress
	// tried is what the files were that were loaded last, with success or not; it is guarded by mu.
	tried *ruledir.State
	// fault is the error of the last load, or ""; it is guarded by mu.
	fault string
}

// rulesPeriod is the time between two looks at the files of rules.
const rulesPeriod = time.Second

// loadedRules is the result of reading the files of rules.
type loadedRules struct {
	config  *rls.Config
	remarks []rulefile.Remark
	omitted int
}

// readRules reads the files of is. The error has all faults.
func readRules(is *ruledir.State, merge bool) (*loadedRules, error) {
	files, err := is.Read()
	if err != nil {
		return nil, err
	}
	c, remarks, omitted, faults := rls.Load(files, merge)
	if faults == nil {
		return &loadedRules{c, remarks, omitted}, nil
	}
	all := make([]error, len(faults))
	for i := range faults {
		all[i] = faults[i]
	}
	return nil, errors.Join(all...)
}

// checkRules returns the faults of the files that the option rls-config of c names; nil if there are none.
func checkRules(c *config.Config) error {
	path := c.Path("rls-config")
	if path == "" {
		return nil
	}
	is, err := ruledir.Look(path)
	if err != nil {
		return c.At("rls-config", err)
	}
	_, err = readRules(is, c.Yes("rls-merge-domains"))
	return err
}

// prepareRules is a [config.Prepare]. It reads the files of rules, and returns a function apply that puts them in
// force. apply is nil if the option rls-config is not set.
func (s *Server) prepareRules(*config.Config) (apply func(), err error) {
	path := s.config.Path("rls-config")
	if path == "" {
		return nil, nil
	}
	is, err := ruledir.Look(path)
	if err != nil {
		return nil, s.config.At("rls-config", err)
	}
	loaded, err := readRules(is, s.config.Yes("rls-merge-domains"))
	if err != nil {
		return nil, err
	}
	return func() {
		s.rules.mu.Lock()
		defer s.rules.mu.Unlock()
		s.applyRules(is, loaded)
	}, nil
}

// applyRules puts rules in force, and returns the number of policies that have changed. is is what their files were. The
// caller holds mu of the rules.
func (s *Server) applyRules(is *ruledir.State, l *loadedRules) (changed int) {
	path := s.config.Path("rls-config")
	s.rules.tried, s.rules.fault = is, ""
	_, before := s.policies.registry.InForce()
	changed = s.policies.registry.SetRules(path, l.config)
	if l.config.Len() == 0 && before.Len() > 0 {
		s.log.Warn("there are no rules any more", "files", path)
	}
	for i := range l.remarks[:min(len(l.remarks), maxFaultLines)] {
		s.log.Warn("remark on the rules", "remark", l.remarks[i].String())
	}
	s.log.Info("the rules are in force", "files", path, "rules", l.config.Len(), "changed", changed, "remarks", len(l.remarks)+l.omitted)
	return changed
}

// reloadRules reads the files of rules again and puts them in force, for RL.POLICY RELOAD. changed is the number of
// policies that have changed. The error has all faults.
func (s *Server) reloadRules() (changed int, err error) {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	is, err := ruledir.Look(s.config.Path("rls-config"))
	if err != nil {
		return 0, err
	}
	return s.tryRules(is)
}

// tryRules loads the files that are as is says. After a fault, which goes to the log, the rules before stay in force.
// The caller holds mu of the rules.
func (s *Server) tryRules(is *ruledir.State) (changed int, err error) {
	s.rules.tried = is
	loaded, err := readRules(is, s.config.Yes("rls-merge-domains"))
	if err != nil {
		s.rulesFail(err)
		return 0, err
	}
	return s.applyRules(is, loaded), nil
}

// rulesFail writes err, why rules were not loaded, to the log, unless it is that of the load before. The caller holds
// mu of the rules.
func (s *Server) rulesFail(err error) {
	if err.Error() == s.rules.fault {
		return
	}
	s.rules.fault = err.Error()
	faults := config.Faults(err)
	s.log.Error("the rules were not loaded: those before stay in force", "faults", len(faults))
	for _, fault := range faults[:min(len(faults), maxFaultLines)] {
		s.log.Error("fault of the rules", "error", fault)
	}
}

// followRules looks at the files of rules every rulesPeriod, and loads those that have changed, until ctx ends. It does
// nothing without the option rls-config.
func (s *Server) followRules(ctx context.Context) {
	path := s.config.Path("rls-config")
	if path == "" {
		return
	}
	next := time.NewTicker(rulesPeriod)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		s.lookAtRules(path)
	}
}

// lookAtRules loads the files that path names if they have changed since the last load.
func (s *Server) lookAtRules(path string) {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	is, err := ruledir.Look(path)
	switch {
	case err != nil:
		s.rulesFail(err)
		s.rules.tried = nil
	case !is.Same(s.rules.tried):
		_, _ = s.tryRules(is) // the log has the faults
	}
}
