package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/limitador/limitfile"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/strict"
)

// FromLimitador converts the limits files of Limitador. Limits of one namespace with the same
// conditions and variables become the clauses of one policy. The values of the variables become its
// key. The caller has to know whether the conditions hold. Either the result or the faults are nil.
func FromLimitador(files []File) (*Result, strict.Faults) {
	return withNames(func(n *names) (*Result, strict.Faults) { return fromLimitador(files, n) })
}

func fromLimitador(files []File, all *names) (*Result, strict.Faults) {
	c := limitador{result: &Result{From: "Limitador", Document: new(document.Document)}, groups: map[string]*limitGroup{}, namespaces: map[string]*namespace{}}
	var faults strict.Faults
	for _, f := range files {
		c.result.Files = append(c.result.Files, f.Name)
		faults = append(faults, c.read(f)...)
	}
	if faults != nil {
		return nil, faults
	}
	for _, g := range c.order {
		faults = append(faults, c.add(g, all)...)
	}
	c.join()
	return c.result.finish(faults)
}

// limitador converts limits to policies.
type limitador struct {
	result     *Result
	groups     map[string]*limitGroup
	order      []*limitGroup
	namespaces map[string]*namespace
	names      []string // names of the namespaces, in the order of the files
}

// namespace has the policies that one request to Limitador may be about.
type namespace struct {
	first   *counterLimit
	calls   []Call
	clauses int // number of clauses of all policies of the namespace
}

// counterLimit is one limit of a file, with its conditions and variables as sorted texts.
type counterLimit struct {
	*limitfile.Limit
	conditions, variables []string
}

// limitGroup has the limits that apply to the same calls and become one policy.
type limitGroup struct {
	limits []*counterLimit
	// seconds is the set of the lengths of the windows, in seconds.
	seconds map[int64]bool
}

// read parses the file f, adds its limits to the groups, and returns its faults.
func (c *limitador) read(f File) strict.Faults {
	root, r := strict.Read(f.Name, f.Text, document.MaxText)
	if faults := r.Faults(); faults != nil {
		return faults
	}
	if root.IsMapping() {
		root.Fault("the text must be a list of limits. In a ConfigMap it is the text below data")
		return r.Faults()
	}
	unknown := func(key strict.Key) { // Limitador ignores it
		c.result.note(f.Name, key.Line, strict.Clipped(key.Text), "the field is not known")
	}
	for _, is := range limitfile.Read(f.Name, root, unknown) {
		l := &counterLimit{Limit: is, conditions: texts(is.Conditions), variables: texts(is.Variables)}
		key := fmt.Sprintf("%q %q %q", l.Namespace, l.conditions, l.variables)
		g := c.groups[key]
		if g == nil {
			g = &limitGroup{seconds: map[int64]bool{}}
			c.groups[key] = g
			c.order = append(c.order, g)
		}
		switch {
		case g.seconds[l.Seconds]:
			c.note(l, "limit", "there is one like it with the same seconds, which is in force")
			continue
		case len(g.limits) == policy.MaxClauses:
			c.note(l, "limit", "it is left out: a policy has at most %d clauses", policy.MaxClauses)
			continue
		}
		g.seconds[l.Seconds] = true
		g.limits = append(g.limits, l)
	}
	return r.Faults().Sorted()
}

// texts returns the texts of list, sorted.
func texts(list []limitfile.Expression) (sorted []string) {
	for _, e := range list {
		sorted = append(sorted, e.Text)
	}
	slices.Sort(sorted)
	return sorted
}

func (c *limitador) note(l *counterLimit, what, why string, args ...any) {
	c.result.note(l.File, l.Line, what, why, args...)
}

// add adds the policy of the group g to the result. It returns a fault if there are too many
// policies.
func (c *limitador) add(g *limitGroup, all *names) strict.Faults {
	first := g.limits[0]
	var p document.Policy
	var comments []string
	for _, l := range g.limits {
		clause := window(l.Max, l.Seconds, " ANCHOR FIRST")
		if fault := clauseFault(clause); fault != "" {
			c.note(l, fmt.Sprintf("max_value: %d, seconds: %d", l.Max, l.Seconds), "it does not convert: %s", fault)
			continue
		}
		p.Limits = append(p.Limits, clause)
		for _, text := range []*string{l.Name, l.ID} {
			if text != nil && *text != "" && !slices.Contains(comments, *text) {
				comments = append(comments, *text)
			}
		}
	}
	if len(p.Limits) == 0 {
		return nil
	}
	if len(c.result.Document.Policies) == document.MaxPolicies {
		return strict.Faults{{File: first.File, Line: first.Line, Text: fmt.Sprintf("there are more than %d policies", document.MaxPolicies)}}
	}
	p.Comment, p.Line = remark(strings.Join(comments, ", ")), first.Line
	call := Call{Was: "namespace " + shown(first.Namespace), When: first.conditions}
	parts := []string{first.Namespace}
	for _, v := range first.variables {
		name := variable(v)
		parts = append(parts, name)
		call.Key = append(call.Key, "<"+shown(name)+">")
	}
	if len(call.Key) == 0 {
		call.Key = []string{"all"}
	}
	p.Name = all.unique(fmt.Sprintf("%q %q %q", first.Namespace, first.conditions, first.variables), parts...)
	call.Policy = p.Name
	n := c.namespaces[first.Namespace]
	if n == nil {
		n = &namespace{}
		c.namespaces[first.Namespace], c.names = n, append(c.names, first.Namespace)
	}
	if n.calls, n.clauses = append(n.calls, call), n.clauses+len(p.Limits); len(n.calls) == 2 {
		n.first = first
	}
	if len(first.conditions) > 0 {
		c.note(first, "conditions", "the caller has to know whether they hold, and calls policy %s if all do", p.Name)
	}
	c.result.Document.Policies = append(c.result.Document.Policies, p)
	c.result.Calls = append(c.result.Calls, call)
	return nil
}

// join adds a call for each namespace with several policies. Limitador charges nothing if one of the
// limits of a namespace denies.
func (c *limitador) join() {
	for _, name := range c.names {
		n := c.namespaces[name]
		switch {
		case len(n.calls) == 1:
		case n.clauses > policy.MaxCallClauses:
			c.note(n.first, "namespace "+shown(name), "Limitador charges nothing if one limit denies. RL.USE does so for policies with at most %d clauses in all, joined by AND: of several calls, one that passes has charged before the next one denies", policy.MaxCallClauses)
		default:
			joint := n.calls[0]
			joint.Was, joint.When, joint.And = "namespace "+shown(name)+", as one call, which charges all policies or none", nil, n.calls[1:]
			if slices.ContainsFunc(n.calls, func(one Call) bool { return len(one.When) > 0 }) {
				joint.When = []string{"a condition of a policy does not hold, without that policy"}
			}
			c.result.Calls = append(c.result.Calls, joint)
		}
	}
}

// entry matches a variable that is an entry of the first descriptor of a request.
var entry = regexp.MustCompile(`^descriptors\[0\](?:\.(\w+)|\[(?:'([^'\\]+)'|"([^"\\]+)")\])$`)

// variable returns the name of the entry that the expression text selects, or text itself.
func variable(text string) string {
	if m := entry.FindStringSubmatch(text); m != nil {
		return m[1] + m[2] + m[3]
	}
	return text
}
