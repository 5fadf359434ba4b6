package convert

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

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
	r          *strict.Reader
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

// counterLimit is one limit of a file.
type counterLimit struct {
	file                  string
	line                  int
	namespace, name, id   string
	most, seconds         int64
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
	c.r = r
	for item := range root.Items("the text") {
		l := c.limit(f.Name, item)
		key := fmt.Sprintf("%q %q %q", l.namespace, l.conditions, l.variables)
		g := c.groups[key]
		if g == nil {
			g = &limitGroup{seconds: map[int64]bool{}}
			c.groups[key] = g
			c.order = append(c.order, g)
		}
		switch {
		case g.seconds[l.seconds]:
			c.note(l, "limit", "there is one like it with the same seconds, which is in force")
			continue
		case len(g.limits) == policy.MaxClauses:
			c.note(l, "limit", "it is left out: a policy has at most %d clauses", policy.MaxClauses)
			continue
		}
		g.seconds[l.seconds] = true
		g.limits = append(g.limits, l)
	}
	return r.Faults().Sorted()
}

// limit parses v as one limit of the file called file.
func (c *limitador) limit(file string, v strict.Value) *counterLimit {
	l := &counterLimit{file: file, line: v.Line()}
	var given []string
	for key, value := range v.Fields("a limit") {
		given = append(given, key.Text)
		switch key.Text {
		case "namespace":
			l.namespace, _ = value.Scalar(key.Text)
		case "name":
			l.name, _ = value.Scalar(key.Text)
		case "id":
			l.id, _ = value.Scalar(key.Text)
		case "max_value":
			l.most, _ = value.Number(key.Text, 0, math.MaxInt64)
		case "seconds":
			l.seconds, _ = value.Number(key.Text, 0, math.MaxInt64)
		case "conditions":
			l.conditions = texts(value, key.Text)
		case "variables":
			l.variables = texts(value, key.Text)
		default: // Limitador ignores other fields
			c.result.note(file, key.Line, strict.Clipped(key.Text), "the field is not known")
		}
	}
	if v.IsMapping() {
		for _, field := range []string{"namespace", "seconds", "conditions", "variables"} {
			if !slices.Contains(given, field) {
				v.Fault("%s is missing", field)
			}
		}
	}
	return l
}

// texts parses v as a list of strings, and returns them sorted and without duplicates. For null it
// returns nil. what names the list in faults.
func texts(v strict.Value, what string) (list []string) {
	if v.IsNull() {
		return nil
	}
	for item := range v.Items(what) {
		text, _ := item.Scalar(what)
		list = append(list, text)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (c *limitador) note(l *counterLimit, what, why string, args ...any) {
	c.result.note(l.file, l.line, what, why, args...)
}

// add adds the policy of the group g to the result. It returns a fault if there are too many
// policies.
func (c *limitador) add(g *limitGroup, all *names) strict.Faults {
	first := g.limits[0]
	var p document.Policy
	var comments []string
	for _, l := range g.limits {
		clause := window(l.most, l.seconds, " ANCHOR FIRST")
		if fault := clauseFault(clause); fault != "" {
			c.note(l, fmt.Sprintf("max_value: %d, seconds: %d", l.most, l.seconds), "it does not convert: %s", fault)
			continue
		}
		p.Limits = append(p.Limits, clause)
		for _, text := range []string{l.name, l.id} {
			if text != "" && !slices.Contains(comments, text) {
				comments = append(comments, text)
			}
		}
	}
	if len(p.Limits) == 0 {
		return nil
	}
	if len(c.result.Document.Policies) == document.MaxPolicies {
		return strict.Faults{{File: first.file, Line: first.line, Text: fmt.Sprintf("there are more than %d policies", document.MaxPolicies)}}
	}
	p.Comment, p.Line = remark(strings.Join(comments, ", ")), first.line
	call := Call{Was: "namespace " + shown(first.namespace), When: first.conditions}
	parts := []string{first.namespace}
	for _, v := range first.variables {
		name := variable(v)
		parts = append(parts, name)
		call.Key = append(call.Key, "<"+shown(name)+">")
	}
	if len(call.Key) == 0 {
		call.Key = []string{"all"}
	}
	p.Name = all.unique(fmt.Sprintf("%q %q %q", first.namespace, first.conditions, first.variables), parts...)
	call.Policy = p.Name
	n := c.namespaces[first.namespace]
	if n == nil {
		n = &namespace{}
		c.namespaces[first.namespace], c.names = n, append(c.names, first.namespace)
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
		case n.clauses > policy.MaxClauses:
			c.note(n.first, "namespace "+shown(name), "Limitador charges nothing if one limit denies. RL.USE does so for policies with at most %d clauses in all, joined by AND: of several calls, one that passes has charged before the next one denies", policy.MaxClauses)
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
