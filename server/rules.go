package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/ruledir"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// rules has the state of the rules from the files that the option rls-config names.
type rules struct {
	mu sync.Mutex // locked while the files are loaded
	// tried is the state of the files at the latest attempt to load them, even if it has failed; it
	// is guarded by mu.
	tried *ruledir.State
	// fault is the reason why the latest attempt to load the files has failed; nil if the rules of the files are in
	// force. It is set with mu held.
	fault atomic.Pointer[rulesFault]
	// confirmed is the reading of the stopwatch at which the files were last seen to be the source of the rules in
	// force.
	confirmed atomic.Int64
}

// rulesFault has the faults of files of rules. all is the text of all faults, first is the text of the first one in one
// line, and more is the number of the others.
type rulesFault struct {
	all, first string
	more       int
}

// String returns the first fault, and the number of the others. A nil fault is "".
func (f *rulesFault) String() string {
	switch {
	case f == nil:
		return ""
	case f.more == 0:
		return f.first
	case f.more == 1:
		return f.first + ", and another fault"
	}
	return fmt.Sprintf("%s, and %d other faults", f.first, f.more)
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

// checkRules returns the faults of the files that the option rls-config of c names; nil if there are none, or if the
// server starts without them.
func checkRules(c *config.Config) error {
	path := c.Path("rls-config")
	if path == "" || !c.Yes("rls-config-required") {
		return nil
	}
	is, err := ruledir.Look(path)
	if err != nil {
		return c.At("rls-config", err)
	}
	_, err = readRules(is, c.Yes("rls-merge-domains"))
	return err
}

// startRules loads the files of rules at the start, and registers their reload. A fault is an error, unless
// rls-config-required is no: then it goes to the log, and there are no rules until the files are loaded.
func (s *Server) startRules() error {
	path := s.config.Path("rls-config")
	if path == "" || s.config.Yes("rls-config-required") {
		return s.start(s.prepareRules)
	}
	s.lookAtRules(path)
	s.config.OnReload(s.prepareRules)
	return nil
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

// applyRules puts rules in force, and returns the number of policies that have changed. The parameter is has the state
// of their files. The caller holds mu of the rules.
func (s *Server) applyRules(is *ruledir.State, l *loadedRules) (changed int) {
	path := s.config.Path("rls-config")
	s.rules.tried = is
	s.rules.fault.Store(nil)
	s.rulesConfirmed()
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
		s.rulesAway(err)
		return 0, err
	}
	return s.tryRules(is)
}

// tryRules loads the files whose state the parameter is has. After a fault, which it logs, the earlier rules remain in
// force. The caller holds mu of the rules.
func (s *Server) tryRules(is *ruledir.State) (changed int, err error) {
	s.rules.tried = is
	loaded, err := readRules(is, s.config.Yes("rls-merge-domains"))
	if err != nil {
		s.rulesFail(err)
		return 0, err
	}
	return s.applyRules(is, loaded), nil
}

// rulesFail logs err, the error of loading the rules, unless the previous load had the same error. The caller holds mu
// of the rules.
func (s *Server) rulesFail(err error) {
	text := err.Error()
	if before := s.rules.fault.Load(); before != nil && text == before.all {
		return
	}
	faults := config.Faults(err)
	s.rules.fault.Store(&rulesFault{text, oneLine.Replace(faults[0].Error()), len(faults) - 1})
	s.log.Error("the rules were not loaded: those before stay in force", "faults", len(faults))
	for _, fault := range faults[:min(len(faults), maxFaultLines)] {
		s.log.Error("fault of the rules", "error", fault)
	}
}

// oneLine removes line ends, which the name of a file may contain.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// rulesAway records that the files of rules could not be examined, because of err. The caller holds mu of the rules.
func (s *Server) rulesAway(err error) {
	s.rulesFail(err)
	s.rules.tried = nil
}

// rulesConfirmed records that the rules in force are still those in the files.
func (s *Server) rulesConfirmed() { s.rules.confirmed.Store(int64(s.stopwatch())) }

// followRules examines the files of rules every rulesPeriod, and loads them after a change, until ctx ends. It does
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
		s.rulesAway(err)
	case !is.Same(s.rules.tried):
		_, _ = s.tryRules(is) // tryRules itself logs the faults
	case s.rules.fault.Load() == nil:
		s.rulesConfirmed()
	}
}
