package registry

import (
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/rls"
)

// published has the table that calls use, and the rules. Both are replaced together.
type published struct {
	table *policy.Table
	// rules are the rules whose policies the table has; nil if there are none. path is the option that names their
	// files.
	rules *rls.Config
	path  string
}

// SetRules puts the policies of the rules of c in force, in place of the policies of earlier rules. It is for a
// Registry with Options.Rules. The policies are not records, so they are neither written to a store nor replicated, and
// commands cannot change them. They hide records and entries of the policy file with the same names. Overrides, boosts,
// blocks and exemptions of their keys are records as for other policies, and remain while there is no such rule. path
// is the option that names the files. If c is nil, there are no rules. changed is the number of policies that were
// added, removed or changed. SetRules does not use the store. It waits for other changes.
func (r *Registry) SetRules(path string, c *rls.Config) (changed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patient = false
	r.drain()
	r.rules, r.rulesPath = c, path
	r.overlay.rules = make([]*policy.Entry, 0, c.Len())
	for _, rule := range c.Rules() {
		r.overlay.rules = append(r.overlay.rules, rule.Entry())
	}
	changed = r.lay()
	r.recount()
	r.publish()
	return changed
}

// InForce returns the policies in force and the rules whose policies are among them. Both are of one version. c is nil
// if there are no rules. InForce takes as long as [Registry.Table].
func (r *Registry) InForce() (t *policy.Table, c *rls.Config) {
	if r.behind.Load() {
		r.catchUp()
	}
	p := r.published.Load()
	return p.table, p.rules
}

// Fixed reports whether the policy file or a rule of files defines e, so that no command may change e.
func (r *Registry) Fixed(e *policy.Entry) bool { return r.Defines(e) || r.ruled(e) != "" }

// ruled returns the path of the rules if e is the policy of a rule; otherwise "".
func (r *Registry) ruled(e *policy.Entry) string {
	if p := r.published.Load(); e.Kind == policy.Main && e.File && p.rules.Rule(e.Policy) != nil {
		return p.path
	}
	return ""
}
