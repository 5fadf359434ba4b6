package rls

import (
	"fmt"

	"github.com/cellserver/cellserver/policy/strict"
)

// Way is the way in which an entry matches a step.
type Way uint8

// These are the ways of a match, in the order in which they are tried.
const (
	// ByValue says that "key_value" is the text of the step.
	ByValue Way = iota
	// ByStar says that the text of the step has a star, and "key_value" fits it.
	ByStar
	// ByKey says that the key is the text of the step, whatever the value is.
	ByKey
)

// String returns "value", "star" or "key".
func (w Way) String() string { return [...]string{"value", "star", "key"}[w] }

// Step is a step that an entry matches.
type Step struct {
	// Text is the text of the step: "key" or "key_value".
	Text string
	Way  Way
	// Shared says that the step has share_threshold: the value is no part of the key of the call.
	Shared bool
}

// Lookup says which limit applies to a descriptor, and why.
type Lookup struct {
	// Rule is the rule whose limit applies, or nil.
	Rule *Rule
	// Key is the key with which the policy of Rule is called. It is nil if Rule is.
	Key []byte
	// Steps are the steps that the entries match, in their order. It is shorter than the list of entries if the next one
	// matches no step.
	Steps []Step

	domain  []byte
	known   bool // whether the domain exists
	entries []Entry
}

// Lookup returns which limit of c applies to a descriptor with the given entries and without a limit of its own. It
// charges nothing. The errors are [ErrNoConfig] if c is nil, [ErrNoDomain] and [ErrEntries]. The result refers to domain and
// entries. Lookup is for people: a front uses [Config.Plan].
func (c *Config) Lookup(domain []byte, entries []Entry) (Lookup, error) {
	switch {
	case c == nil:
		return Lookup{}, ErrNoConfig
	case len(domain) == 0:
		return Lookup{}, ErrNoDomain
	case len(entries) > MaxEntries:
		return Lookup{}, ErrEntries
	}
	is := Lookup{domain: domain, entries: entries}
	d := c.domains[string(domain)]
	if is.known = d != nil; !is.known {
		return is, nil
	}
	var p Plan
	if is.Rule = p.match(d, entries); is.Rule != nil {
		is.Key = p.appendKey(nil, false, 0)
	}
	is.Steps = make([]Step, len(p.path))
	for i := range p.path {
		is.Steps[i] = p.path[i].shown()
	}
	return is, nil
}

// shown returns the step of v for people.
func (v *visit) shown() Step {
	way := ByKey
	switch {
	case v.whole && v.step.pattern != nil:
		way = ByStar
	case v.whole:
		way = ByValue
	}
	return Step{Text: v.step.text, Way: way, Shared: v.step.shared}
}

// Sentence returns the result as one English sentence. It shows at most 64 bytes of each text of the request and of the files.
func (l *Lookup) Sentence() string {
	n := len(l.Steps)
	switch {
	case l.Rule != nil:
		return fmt.Sprintf("policy %s applies to key %s: %s", l.Rule.Policy, strict.Clipped(string(l.Key)), l.Rule.Limits.Text[0])
	case !l.known:
		return "no limit applies: there is no domain " + strict.Clipped(string(l.domain))
	case n == len(l.entries) && n > 0:
		return fmt.Sprintf("no limit applies: the step %s has no rate_limit", strict.Clipped(l.Steps[n-1].Text))
	case n == len(l.entries):
		return "no limit applies: the descriptor has no entries"
	}
	entry, below := strict.Clipped(l.entries[n].String()), "of the domain"
	if n > 0 {
		below = "below " + strict.Clipped(l.Steps[n-1].Text)
	}
	return fmt.Sprintf("no limit applies: no step %s matches entry %d, %s", below, n+1, entry)
}

// String returns "key=value".
func (e *Entry) String() string { return string(e.Key) + "=" + string(e.Value) }
