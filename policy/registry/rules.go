package registry

import (
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/rls"
)

// published has the table that calls use, and the rules. Both are replaced together.
type published struct {
	table *policy.Table
	ruleFiles
}

// ruleFiles are the rules whose policies a table has, of the files of other rate limiters.
type ruleFiles struct {
	// rules are those of envoyproxy/ratelimit, and rulesPath is where they are from; rules is nil without any.
	rules     *rls.Config
	rulesPath string
	// limits are those of Limitador, and limitsPath is where they are from; limits is nil without any.
	limits     *limitador.Config
	limitsPath string
}

// entries returns the entries of the policies.
func (f *ruleFiles) entries() []*policy.Entry {
	all := make([]*policy.Entry, 0, f.rules.Len()+len(f.limits.Limits()))
	for _, rule := range f.rules.Rules() {
		all = append(all, rule.Entry())
	}
	for _, is := range f.limits.Limits() {
		all = append(all, is.Entry())
	}
	return all
}

// path returns where the rule is from whose policy has the given name, or "" if there is none.
func (f *ruleFiles) path(policy string) string {
	switch {
	case f.rules.Rule(policy) != nil:
		return f.rulesPath
	case f.limits.Limit(policy) != nil:
		return f.limitsPath
	}
	return ""
}

func (f *ruleFiles) bytes() int64 { return f.rules.Bytes() + f.limits.Bytes() }

// SetRules puts the policies of the rules of c in force, in place of the policies of earlier rules. It is for a
// Registry with Options.Rules. The policies are not records, so they are neither written to a store nor replicated, and
// commands cannot change them. They hide records and entries of the policy file with the same names. Overrides, boosts,
// blocks and exemptions of their keys are records as for other policies, and remain while there is no such rule. path
// is the option that names the files. If c is nil, there are no rules. changed is the number of policies that were
// added, removed or changed. SetRules does not use the store. It waits for other changes.
func (r *Registry) SetRules(path string, c *rls.Config) (changed int) {
	return r.setFiles(func(f *ruleFiles) { f.rules, f.rulesPath = c, path })
}

// SetLimits does what [Registry.SetRules] does, for the limits of Limitador. The policies of rules stay.
func (r *Registry) SetLimits(path string, c *limitador.Config) (changed int) {
	return r.setFiles(func(f *ruleFiles) { f.limits, f.limitsPath = c, path })
}

func (r *Registry) setFiles(set func(f *ruleFiles)) (changed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patient = false
	r.drain()
	set(&r.files)
	r.overlay.rules = r.files.entries()
	changed = r.lay()
	r.recount()
	r.publish()
	return changed
}

// InForce returns the policies in force and the rules whose policies are among them. Both are of one version. c is nil
// if there are no rules. InForce takes as long as [Registry.Table].
func (r *Registry) InForce() (t *policy.Table, c *rls.Config) {
	p := r.inForce()
	return p.table, p.rules
}

// Limits returns the limits of Limitador whose policies are in force, or nil if there are none. It costs what
// [Registry.Table] does.
func (r *Registry) Limits() *limitador.Config { return r.inForce().limits }

func (r *Registry) inForce() *published {
	if r.behind.Load() {
		r.catchUp()
	}
	return r.published.Load()
}

// Fixed reports whether the policy file or a rule of files defines e, so that no command may change e.
func (r *Registry) Fixed(e *policy.Entry) bool { return r.Defines(e) || r.ruled(e) != "" }

// ruled returns where the rule is from if e is the policy of a rule, and otherwise "".
func (r *Registry) ruled(e *policy.Entry) string {
	if e.Kind != policy.Main || !e.File {
		return ""
	}
	return r.published.Load().path(e.Policy)
}
