package document

import (
	"math"
	"slices"
	"time"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/yield"
)

// Parse parses the text of a file of at most [MaxText] bytes. name is the name of the file, for
// faults. o has the bounds of the limits. If there is a fault, the document is nil.
func Parse(name string, text []byte, o policy.Bounds) (*Document, Faults) {
	return ParseUpTo(name, text, MaxText, o)
}

// ParseUpTo does what [Parse] does, for a text of up to most bytes. It is for the text of RL.POLICY
// DUMP, which grows with the number of policies.
func ParseUpTo(name string, text []byte, most int, o policy.Bounds) (*Document, Faults) {
	root, r := strict.Read(name, text, most)
	if faults := r.Faults(); faults != nil {
		return nil, faults
	}
	p := parser{r: r, bounds: o}
	p.document(root)
	if faults := r.Faults(); faults != nil {
		slices.SortStableFunc(faults, func(a, b Fault) int { return a.Line - b.Line })
		return nil, faults
	}
	return &p.d, nil
}

func (p *parser) document(root strict.Value) {
	found := false
	for key, value := range root.Fields("the text") {
		if key.Text != "policies" {
			p.r.Fault(key.Line, "unknown field %s: there is nothing beside policies", strict.Clipped(key.Text))
			continue
		}
		found = true
		for name, below := range value.Fields("policies") {
			if len(p.d.Policies) == MaxPolicies {
				p.r.Fault(name.Line, "there are more than %d policies", MaxPolicies)
				break
			}
			p.policy(name, below)
		}
	}
	if !found && root.IsMapping() {
		root.Fault("policies is missing")
	}
}

// policy parses v, the mapping below the name of a policy, and adds the policy to the document.
func (p *parser) policy(name strict.Key, v strict.Value) {
	yield.Processor() // let other goroutines run, since there may be very many policies
	pol := Policy{Name: name.Text, Line: name.Line}
	var comment, limits, overrides strict.Value
	for key, value := range v.Fields("a policy") {
		if i := slices.IndexFunc(policy.Switches, func(s policy.Switch) bool { return s.Field == key.Text }); i >= 0 {
			*policy.Switches[i].Of(&pol.Flags), _ = value.Bool(key.Text)
			continue
		}
		switch key.Text {
		case "comment":
			comment = value
			pol.Comment, _ = value.String("comment")
		case "ms":
			pol.Millis, _ = value.Bool("ms")
		case "key":
			pol.Key = keyForm(value)
		case "notify":
			pol.Notify = mark(value)
		case "classes":
			pol.Classes = classes(value)
		case "limits":
			limits = value
		case "overrides":
			overrides = value
		default:
			p.r.Fault(key.Line, "unknown field %s: a policy has %s", strict.Clipped(key.Text), fields)
		}
	}
	// Parse the clauses and the overrides last: they depend on ms and key, which may come after them.
	e := policy.Entry{Kind: policy.Main, Policy: pol.Name, Comment: pol.Comment}
	if v.IsMapping() {
		e.Limits = p.limits(limits, name.Line, pol.Millis)
	}
	e.Classes = pol.Classes
	p.check(e, name, comment)
	pol.Limits = textOf(e.Limits)
	if overrides.IsSet() {
		lines := map[string]int{} // the line of each pattern in its normal form, since several texts may be the same network
		for pattern, value := range overrides.Fields("overrides") {
			o := p.override(pattern, value, &pol)
			if first, twice := lines[o.Pattern]; twice {
				p.r.Fault(pattern.Line, "%s is there twice: its first is in line %d", strict.Clipped(o.Pattern), first)
			}
			lines[o.Pattern] = pattern.Line
			pol.Overrides = append(pol.Overrides, o)
		}
	}
	p.d.Policies = append(p.d.Policies, pol)
}

// fields has the names of the fields of a policy, for errors.
var fields = func() string {
	s := "comment, ms, "
	for i := range policy.Switches {
		s += policy.Switches[i].Field + ", "
	}
	return s + "key, notify, classes, limits and overrides"
}()

// override parses v, the mapping below the pattern of an override of pol.
func (p *parser) override(pattern strict.Key, v strict.Value, pol *Policy) Override {
	yield.Processor() // let other goroutines run, since there may be very many overrides
	o := Override{Pattern: pattern.Text, Millis: pol.Millis, Line: pattern.Line}
	var comment, limits strict.Value
	for key, value := range v.Fields("an override") {
		switch key.Text {
		case "comment":
			comment = value
			o.Comment, _ = value.String("comment")
		case "ms":
			o.Millis, _ = value.Bool("ms")
		case "limits":
			limits = value
		case "expires":
			o.Expires = expires(value)
		default:
			p.r.Fault(key.Line, "unknown field %s: an override has comment, ms, limits and expires", strict.Clipped(key.Text))
		}
	}
	e := policy.Entry{Kind: policy.Override, Policy: validName, Pattern: o.Pattern, Comment: o.Comment}
	if v.IsMapping() {
		e.Limits = p.limits(limits, pattern.Line, o.Millis)
	}
	p.check(e, pattern, comment)
	o.Limits = textOf(e.Limits)
	if network, err := pol.Key.Pattern(o.Pattern); err == nil {
		o.Pattern = network
	} else {
		p.r.Fault(pattern.Line, "%s: %v", strict.Clipped(o.Pattern), err)
	}
	return o
}

// keyForm parses v as the field key of a policy. It returns the zero KeyForm if v is none.
func keyForm(v strict.Value) policy.KeyForm {
	text, ok := v.String("key")
	if !ok {
		return policy.KeyForm{}
	}
	f, err := policy.ParseKeyForm(text)
	if err != nil {
		v.Fault("key must be IP with the lengths of networks for IPv4 and IPv6, such as IP 32 56, not %s", strict.Clipped(text))
	}
	return f
}

// mark parses v as the field notify of a policy. It returns 0 if v is none.
func mark(v strict.Value) int64 {
	text, ok := v.Scalar("notify")
	if !ok {
		return 0
	}
	percent, err := policy.ParseMark(text)
	if err != nil {
		v.Fault("notify must be a share from 1%% to 100%%, not %s", strict.Clipped(text))
	}
	return percent
}

// classes parses v as the field classes of a policy, a mapping of names to shares. It returns "" if v is none.
func classes(v strict.Value) string {
	var all []policy.Class
	for name, value := range v.Fields("classes") {
		text, ok := value.Scalar("a class")
		keep, err := policy.ParseShare(text)
		if ok && err != nil {
			value.Fault("a class must have a share from 0%% to 100%%, not %s", strict.Clipped(text))
		}
		if policy.CheckName([]byte(name.Text)) != nil {
			value.Fault("%s: %v", strict.Clipped(name.Text), policy.ErrClass)
			continue
		}
		all = append(all, policy.Class{Name: name.Text, Keep: keep})
	}
	text, err := policy.ClassText(all)
	if err != nil {
		v.Fault("classes: %v", err)
	}
	return text
}

// validName stands for the name of a policy in checks of other parts, because the name itself is
// checked where it is defined.
const validName = "policy"

func textOf(l *policy.Limits) []string {
	if l == nil { // the fault of the limits was reported already
		return nil
	}
	return l.Text
}

// expires parses v as the time at which an override ends. It returns the zero time if v is not a
// time.
func expires(v strict.Value) time.Time {
	text, ok := v.Scalar("expires")
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		v.Fault("expires must be a time such as 2026-12-31T23:59:59Z, not %s", strict.Clipped(text))
	case at.Before(time.Unix(0, 0)) || at.After(lastExpiry):
		v.Fault("expires must be from 1970 to %d", lastExpiry.Year()-1)
	}
	return at.UTC()
}

// lastExpiry is the last instant that the server can represent.
var lastExpiry = time.Unix(0, math.MaxInt64).UTC()
