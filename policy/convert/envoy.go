package convert

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// FromEnvoy converts the configuration of envoyproxy/ratelimit. Descriptors with the same key in
// one list become a policy: the one without a value gives its limits, and the others become
// overrides. A descriptor that a pattern cannot express becomes a policy of its own, which the
// caller has to choose. Either the result or the faults are nil.
func FromEnvoy(files []File) (*Result, strict.Faults) {
	return withNames(func(n *names) (*Result, strict.Faults) { return fromEnvoy(files, n) })
}

func fromEnvoy(files []File, n *names) (*Result, strict.Faults) {
	e := envoy{
		result: &Result{From: "envoyproxy/ratelimit", Document: new(document.Document), advice: whichFirst},
		names:  n, named: map[string]string{},
	}
	r := envoyReader{Reader: rulefile.Reader{Merge: true, Strict: true}, result: e.result}
	var faults strict.Faults
	for _, f := range files {
		e.result.Files = append(e.result.Files, f.Name)
		faults = append(faults, r.read(f)...)
	}
	if faults != nil {
		return nil, faults
	}
	for _, d := range r.Domains {
		e.domain = shown(d.Name)
		e.level([]string{allowed(d.Name)}, strconv.Quote(d.Name), nil, descriptors(d.Descriptors, &faults))
	}
	if faults != nil {
		return nil, faults
	}
	r.noteRemarks()
	e.noteReplaced()
	return e.result.finish(e.faults)
}

const whichFirst = "Of several conditions that hold, one with an exact value goes before one with a pattern."

// envoy converts descriptors to policies.
type envoy struct {
	result *Result
	names  *names
	faults strict.Faults
	domain string
	// named maps the name of a limit to the name of its policy. replacing has the descriptors whose
	// limits replace limits with a name.
	named     map[string]string
	replacing []replacing
}

type replacing struct {
	d      *descriptor
	policy string
}

// level converts the descriptors of one list and of the lists below it. path has the descriptors
// above the list. name has the parts of the policies' names that follow from path. raw is one text
// with the same parts, including the characters that a name must not have.
func (e *envoy) level(name []string, raw string, path []step, list []*descriptor) {
	var keys []string
	groups := map[string][]*descriptor{}
	for _, d := range list {
		if groups[d.key] == nil {
			keys = append(keys, d.key)
		}
		groups[d.key] = append(groups[d.key], d)
	}
	for _, key := range keys {
		e.group(name, raw, path, groups[key])
	}
	for _, d := range list {
		if len(d.children) > 0 {
			below := append(slices.Clone(name), allowed(d.composite()))
			e.level(below, raw+d.raw(), append(slices.Clone(path), newStep(d, groups[d.key], nil)), d.children)
		}
	}
}

// group converts list, the descriptors with the same key in one list of the file. The other
// parameters have the same meaning as in level.
func (e *envoy) group(name []string, raw string, path []step, list []*descriptor) {
	var base *descriptor // the descriptor without a value, which is for any value; nil if there is none
	var with []*descriptor
	for _, d := range list {
		if d.value == "" && d.limit != nil {
			base = d
		}
		if d.limit != nil {
			with = append(with, d)
		}
	}
	if len(with) == 0 {
		return
	}
	shadow := with[0].shadow
	if base != nil {
		shadow = base.shadow
	}
	var inside, apart []*descriptor
	for _, d := range list {
		switch why := apartness(path, d, shadow); {
		case d.value == "":
		case why == "":
			inside = append(inside, d)
		case d.limit != nil:
			e.note(d, "value "+shown(d.value), "it has a policy of its own, which the caller has to choose: %s", why)
			apart = append(apart, d)
		default:
			apart = append(apart, d)
		}
	}
	if base != nil || slices.ContainsFunc(inside, func(d *descriptor) bool { return d.limit != nil }) {
		e.shared(name, raw, path, base, inside, apart, shadow)
	}
	for _, d := range apart {
		if d.limit != nil {
			e.single(name, raw, path, d, list)
		}
	}
}

// raw returns the key and the value of d as one text, which is unique in the list of d.
func (d *descriptor) raw() string { return strconv.Quote(d.key) + strconv.Quote(d.value) }

// apartness returns the reason why d cannot be an override in the policy of its group, or "" if it
// can. shadow says whether that policy is a shadow.
func apartness(path []step, d *descriptor, shadow bool) string {
	_, prefix := d.prefix()
	switch {
	case d.limit != nil && d.shadow != shadow:
		return "shadow is said of a whole policy"
	case slices.ContainsFunc(path, step.isInKey):
		return "the key begins with another value"
	case !d.exact() && !prefix:
		return "a pattern is an exact key, or a prefix that ends in *"
	case len(d.value) > policy.MaxPattern:
		return fmt.Sprintf("a pattern has at most %d bytes", policy.MaxPattern)
	}
	return ""
}

// shared adds the policy of a group. base is the descriptor with the limits of the policy, or nil.
// inside has the descriptors that become overrides, and apart those that do not belong to the
// policy. shadow says whether the policy is a shadow. The other parameters have the same meaning as
// in level.
func (e *envoy) shared(name []string, raw string, path []step, base *descriptor, inside, apart []*descriptor, shadow bool) {
	first := base
	if base == nil {
		first = inside[0]
	}
	p := document.Policy{Name: e.names.unique(raw+strconv.Quote(first.key), append(slices.Clone(name), first.key)...), Flags: policy.Flags{Shadow: shadow}, Limits: []string{unlimited}, Line: first.line}
	if base != nil {
		p.Limits, p.Comment = e.limits(base, p.Name), remark(base.limit.name)
	} else {
		e.note(first, "other values of "+shown(first.key), "they are not limited there, and %s", whyUnlimited)
	}
	var exact []*descriptor
	others := slices.Clone(apart)
	for _, d := range inside {
		if d.exact() {
			exact = append(exact, d)
		} else if d.share && d.limit != nil {
			others = append(others, d)
		}
	}
	e.call(path, newStep(&descriptor{key: first.key}, others, exact), p.Name)
	catchAll := base != nil || slices.ContainsFunc(inside, func(d *descriptor) bool { return !d.exact() && d.limit != nil })
	e.noteOrder(inside)
	for _, d := range inside {
		o := document.Override{Pattern: d.value, Limits: []string{unlimited}, Line: d.line}
		switch {
		case d.limit != nil:
			o.Limits, o.Comment = e.limits(d, p.Name), remark(d.limit.name)
		case catchAll:
			o.Comment = "not limited"
		default:
			continue
		}
		if d.share && d.limit != nil {
			e.call(path, newStep(d, exact, nil), p.Name)
		}
		p.Overrides = append(p.Overrides, o)
	}
	e.add(p, first)
}

// single adds a policy for d alone. beside has the descriptors with the same key in the same list.
// The other parameters have the same meaning as in level.
func (e *envoy) single(name []string, raw string, path []step, d *descriptor, beside []*descriptor) {
	p := document.Policy{Name: e.names.unique(raw+d.raw(), append(slices.Clone(name), allowed(d.composite()))...), Flags: policy.Flags{Shadow: d.shadow}, Line: d.line}
	p.Limits, p.Comment = e.limits(d, p.Name), remark(d.limit.name)
	e.call(path, newStep(d, beside, nil), p.Name)
	e.add(p, d)
}

func (e *envoy) add(p document.Policy, d *descriptor) {
	if len(e.result.Document.Policies) == document.MaxPolicies {
		e.faults = strict.Faults{{File: d.file, Line: d.line, Text: fmt.Sprintf("there are more than %d policies", document.MaxPolicies)}}
		return
	}
	e.result.Document.Policies = append(e.result.Document.Policies, p)
}

// limits returns the clauses for the limit of d, which becomes a part of the policy called policy.
// It adds notes about the fields of d that do not convert.
func (e *envoy) limits(d *descriptor, policy string) []string {
	l := d.limit
	for _, field := range d.noted {
		e.note(d, field, "%s", whyNot[field])
	}
	if l.name != "" {
		e.named[l.name] = policy
	}
	if len(l.replaces) > 0 {
		e.replacing = append(e.replacing, replacing{d, policy})
	}
	if l.unlimited {
		e.note(d, "unlimited", "%s", whyUnlimited)
		return []string{unlimited}
	}
	if why := whyUnit[l.unit]; why != "" {
		e.note(d, "unit: "+l.unit, "%s", why)
	}
	return []string{window(l.requests, l.seconds, "")}
}

// whyUnit explains, for each unit, how it is converted.
var whyUnit = map[string]string{
	"month": "it is 30 days, as in ratelimit, and begins at multiples of that since 1970, not on the first day of a month: SW n MONTH does that",
	"year":  "it is 365 days, as in ratelimit, and begins at multiples of that since 1970, not on the first of January: SW n YEAR does that",
}

// whyNot explains, for each field that is not converted, why not.
var whyNot = map[string]string{
	"quota_mode":      "each limit denies by itself. ratelimit denies only when all quotas are used up: ANY between policies in one call of RL.USE charges the first that passes",
	"detailed_metric": "it is not needed: each key is counted by itself, and RL.TOP shows it",
	"value_to_metric": "it is not needed: each key is counted by itself, and RL.TOP shows it",
	"metadata":        "replies have none",
}

func (e *envoy) note(d *descriptor, what, why string, args ...any) {
	e.result.note(d.file, d.line, what, why, args...)
}

// noteReplaced adds notes about replaced limits. It must be called when all names are known.
func (e *envoy) noteReplaced() {
	for _, r := range e.replacing {
		for _, name := range r.d.limit.replaces {
			if policy, ok := e.named[name]; ok {
				e.note(r.d, "replaces "+shown(name), "a caller that uses policy %s leaves out the call of policy %s", r.policy, policy)
			} else {
				e.note(r.d, "replaces "+shown(name), "no limit has this name")
			}
		}
	}
}

// noteOrder adds notes to descriptors for which the order matters: ratelimit uses the first pattern
// in the file that matches a value, but a policy uses the longest.
func (e *envoy) noteOrder(list []*descriptor) {
	earlier := map[string]bool{}
	for _, d := range list {
		prefix, ok := d.prefix()
		if !ok {
			continue
		}
		for end := range len(prefix) {
			if earlier[prefix[:end]] {
				e.note(d, "value "+shown(d.value), "it is in force here, since the longest pattern wins. ratelimit takes %s, which comes first", shown(prefix[:end]+"*"))
				break
			}
		}
		earlier[prefix] = true
	}
}

// call adds a [Call] for policy to the result. Its conditions are the conditions of the steps of
// path and of last.
func (e *envoy) call(path []step, last step, policy string) {
	c := Call{Was: e.domain, Policy: policy}
	for _, s := range append(slices.Clone(path), last) {
		c.Was += " (" + shown(s.key) + ")"
		if s.condition != "" {
			c.When = append(c.When, s.condition)
		}
	}
	for _, s := range path {
		if s.isInKey() {
			c.Key = append(c.Key, "<"+shown(s.key)+">")
		}
	}
	switch {
	case last.share, last.exact() && len(c.Key) == 0:
		c.Key = append(c.Key, literal(last.value))
	case !last.exact():
		c.Key = append(c.Key, "<"+shown(last.key)+">")
	}
	e.result.Calls = append(e.result.Calls, c)
}
