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
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/ruledir"
)

// ruleFiles are files of another rate limiter that an option names, whose limits become policies.
type ruleFiles struct {
	ruleKind
	mu sync.Mutex // a load is in progress
	// tried is the state of the files at the latest attempt to load them, successful or not; it is
	// guarded by mu.
	tried *ruledir.State
	// fault is the reason why the latest attempt to load the files has failed; nil if the rules of the files are in
	// force. It is set with mu held.
	fault atomic.Pointer[rulesFault]
	// confirmed is the reading of the stopwatch at which the files were last seen to be the source of the rules in
	// force.
	confirmed atomic.Int64
	// inForce is the number of rules in force. It is set by holders of mu.
	inForce atomic.Int64
}

// ruleKind is what is special about the files of an option.
type ruleKind struct {
	option string
	// figures are the names of their figures: whether they are loaded, the time since they were looked at, and the number of
	// rules. field is the field of INFO with the fault.
	figures [3]string
	field   string
	// required reports whether the server starts only with files without a fault.
	required func(c *config.Config) bool
	// read reads the files of is. The error has all faults.
	read func(is *ruledir.State, c *config.Config) (*loadedRules, error)
}

// ruleKinds returns the kinds of rules of files.
func ruleKinds() [2]ruleKind {
	return [...]ruleKind{
		{
			option: "rls-config", figures: [3]string{"rls_config_ok", "rls_config_age_seconds", "rls_rules"}, field: "rls_config_fault",
			required: func(c *config.Config) bool { return c.Yes("rls-config-required") }, read: readRules,
		},
		{
			option: "limitador-limits", figures: [3]string{"limitador_limits_ok", "limitador_limits_age_seconds", "limitador_limits"}, field: "limitador_limits_fault",
			required: func(*config.Config) bool { return true }, read: readLimits,
		},
	}
}

// openRules prepares the files of the options that are set.
func (s *Server) openRules() {
	for _, kind := range ruleKinds() {
		if s.config.Path(kind.option) != "" {
			s.rules = append(s.rules, &ruleFiles{ruleKind: kind})
		}
	}
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
	// set puts the policies of the rules in force, whose number is rules.
	set     func(r *registry.Registry, path string) (changed int)
	rules   int
	remarks []string
	omitted int // remarks that are not among these
}

// readRules reads the files of rls-config.
func readRules(is *ruledir.State, c *config.Config) (*loadedRules, error) {
	files, err := is.Read()
	if err != nil {
		return nil, err
	}
	rules, remarks, omitted, faults := rls.Load(files, c.Yes("rls-merge-domains"))
	if faults != nil {
		return nil, joined(faults)
	}
	l := &loadedRules{set: func(r *registry.Registry, path string) int { return r.SetRules(path, rules) }, rules: rules.Len(), omitted: omitted}
	for i := range remarks {
		l.remarks = append(l.remarks, remarks[i].String())
	}
	return l, nil
}

// errLimitsFile says that limitador-limits is a directory that has not exactly one file.
var errLimitsFile = errors.New("the limits of Limitador are in one file")

// readLimits reads the file of limitador-limits.
func readLimits(is *ruledir.State, _ *config.Config) (*loadedRules, error) {
	files, err := is.Read()
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, errLimitsFile
	}
	limits, remarks, faults := limitador.Load(files[0])
	if faults != nil {
		return nil, joined(faults)
	}
	l := &loadedRules{set: func(r *registry.Registry, path string) int { return r.SetLimits(path, limits) }, rules: len(limits.Limits())}
	for i := range remarks {
		l.remarks = append(l.remarks, remarks[i].Error())
	}
	return l, nil
}

// joined returns faults as one error, of which [config.Faults] returns each.
func joined(faults strict.Faults) error {
	all := make([]error, len(faults))
	for i := range faults {
		all[i] = faults[i]
	}
	return errors.Join(all...)
}

// checkRules returns the faults of the files of rules that c names; nil if there are none, or if the server starts
// without them.
func checkRules(c *config.Config) error {
	var faults []error
	for _, kind := range ruleKinds() {
		if kind.required(c) {
			_, _, err := kind.load(c)
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// load reads the files that the option of c names. l is nil if the option is not set.
func (k *ruleKind) load(c *config.Config) (l *loadedRules, is *ruledir.State, err error) {
	path := c.Path(k.option)
	if path == "" {
		return nil, nil, nil
	}
	if is, err = ruledir.Look(path); err != nil {
		return nil, nil, c.At(k.option, err)
	}
	l, err = k.read(is, c)
	return l, is, err
}

// startRules loads the files of rules at the start, and registers their reload. A fault is an error, unless the files are
// not required: then it goes to the log, and there are no rules until the files are loaded.
func (s *Server) startRules() error {
	for _, f := range s.rules {
		prepare := func(*config.Config) (apply func(), err error) { return s.prepareRules(f) }
		if !f.required(s.config) {
			s.lookAtRules(f)
			s.config.OnReload(prepare)
			continue
		}
		if err := s.start(prepare); err != nil {
			return err
		}
	}
	return nil
}

// prepareRules is a [config.Prepare] for f. It reads the files, and returns a function that puts their rules in force.
func (s *Server) prepareRules(f *ruleFiles) (apply func(), err error) {
	loaded, is, err := f.load(s.config)
	if err != nil || loaded == nil {
		return nil, err
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		s.applyRules(f, is, loaded)
	}, nil
}

// applyRules puts rules in force, and returns the number of policies that have changed. is is the state of their files. The
// caller holds mu of f.
func (s *Server) applyRules(f *ruleFiles, is *ruledir.State, l *loadedRules) (changed int) {
	path := s.config.Path(f.option)
	f.tried = is
	f.fault.Store(nil)
	s.rulesConfirmed(f)
	changed = l.set(s.policies.registry, path)
	if l.rules == 0 && f.inForce.Load() > 0 {
		s.log.Warn("there are no rules any more", "files", path)
	}
	f.inForce.Store(int64(l.rules))
	for _, remark := range l.remarks[:min(len(l.remarks), maxFaultLines)] {
		s.log.Warn("remark on the rules", "remark", remark)
	}
	s.log.Info("the rules are in force", "files", path, "rules", l.rules, "changed", changed, "remarks", len(l.remarks)+l.omitted)
	return changed
}

// reloadRules reads all files of rules again and puts them in force, for RL.POLICY RELOAD. changed is the number of
// policies that have changed. The error has all faults.
func (s *Server) reloadRules() (changed int, err error) {
	var faults []error
	for _, f := range s.rules {
		n, err := s.reloadRulesOf(f)
		changed, faults = changed+n, append(faults, err)
	}
	return changed, errors.Join(faults...)
}

func (s *Server) reloadRulesOf(f *ruleFiles) (changed int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is, err := ruledir.Look(s.config.Path(f.option))
	if err != nil {
		s.rulesAway(f, err)
		return 0, err
	}
	return s.tryRules(f, is)
}

// tryRules loads the files, whose state is is. After a fault, which it logs, the earlier rules remain in force.
// The caller holds mu of f.
func (s *Server) tryRules(f *ruleFiles, is *ruledir.State) (changed int, err error) {
	f.tried = is
	loaded, err := f.read(is, s.config)
	if err != nil {
		s.rulesFail(f, err)
		return 0, err
	}
	return s.applyRules(f, is, loaded), nil
}

// rulesFail logs err, the error of a load of rules, unless the load before had the same error. The caller holds mu of f.
func (s *Server) rulesFail(f *ruleFiles, err error) {
	text := err.Error()
	if before := f.fault.Load(); before != nil && text == before.all {
		return
	}
	faults := config.Faults(err)
	f.fault.Store(&rulesFault{text, oneLine.Replace(faults[0].Error()), len(faults) - 1})
	s.log.Error("the rules were not loaded: those before stay in force", "faults", len(faults))
	for _, fault := range faults[:min(len(faults), maxFaultLines)] {
		s.log.Error("fault of the rules", "error", fault)
	}
}

// oneLine removes line ends, which the name of a file may contain.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// rulesAway records that the files of rules could not be examined, because of err. The caller holds mu of f.
func (s *Server) rulesAway(f *ruleFiles, err error) {
	s.rulesFail(f, err)
	f.tried = nil
}

// rulesConfirmed records that the rules in force are those of the present files.
func (s *Server) rulesConfirmed(f *ruleFiles) { f.confirmed.Store(int64(s.stopwatch())) }

// rulesFault returns why the files of one option were not loaded, in one line, or "" if the rules of all are in force.
func (s *Server) rulesFault() string {
	for _, f := range s.rules {
		if fault := f.fault.Load(); fault != nil {
			return fault.String()
		}
	}
	return ""
}

// followRules looks at the files of rules every rulesPeriod, and loads those that have changed, until ctx ends. It does
// nothing without an option that names some.
func (s *Server) followRules(ctx context.Context) {
	if len(s.rules) == 0 {
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
		for _, f := range s.rules {
			s.lookAtRules(f)
		}
	}
}

// lookAtRules loads the files of f if they have changed since the last load.
func (s *Server) lookAtRules(f *ruleFiles) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is, err := ruledir.Look(s.config.Path(f.option))
	switch {
	case err != nil:
		s.rulesAway(f, err)
	case !is.Same(f.tried):
		_, _ = s.tryRules(f, is) // the log has the faults
	case f.fault.Load() == nil:
		s.rulesConfirmed(f)
	}
}
