package rls

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// MaxRules is the maximum number of rules of a [Config].
const MaxRules = 100_000

// Unit is the length of a window.
type Unit = rulefile.Unit

// Config has the rules of all files. It never changes, so any goroutine may use it.
type Config struct {
	domains map[string]*domain
	rules   []*Rule
	named   map[string]*Rule // the rules by the names of their policies
	bytes   int64
}

// domain has the rules of one domain of a [Config].
type domain struct {
	level
	// request is the name of the policy of limits that requests bring with them and that no rule matches.
	request []byte
	// from and to are the range of the domain's rules among the rules of the Config.
	from, to int
}

// level has the steps for one list of descriptors.
type level struct {
	steps map[string]*step // the steps without a star, by their texts
	// patterns are the steps whose texts have a star, in the order of the files.
	patterns []*step
}

// step is one descriptor in a rule file, with the descriptors nested in it. A request matches a
// path of steps.
type step struct {
	level
	text string
	// pattern is the text as a pattern if it has a star; otherwise nil.
	pattern *rulefile.Pattern
	// prefix is the key followed by '_'. It is nil if the key has a star, because then matching texts need not begin
	// with it.
	prefix []byte
	// exact says that the step has a value without a star.
	exact bool
	// shared says that all values of the step share one state.
	shared bool
	rule   *Rule // the rule of the step; nil if the step has no limit
}

// Rule is a limit in a file, with the policy that is made of it.
type Rule struct {
	// Domain is the domain, and Path has the texts of the steps: "key" or "key_value".
	Domain string
	Path   []string
	// Policy is the name of the policy.
	Policy string
	// Limits are the limits of the policy: "SW n seconds FIXED", or "NONE" if the rule is unlimited.
	Limits *policy.Limits
	// Limit is the limit as the file has it.
	Limit *rulefile.Limit
	// Shadow and Quota are the fields shadow_mode and quota_mode.
	Shadow, Quota bool
	// Shared says that a step of the path has share_threshold.
	Shared bool
	// Metadata is the metadata of the descriptor, or nil.
	Metadata strict.Struct
	// File and Line say where the rule is. Line is counted from 1.
	File string
	Line int

	policy []byte // the name in Policy, as the bytes that calls need
	index  int    // index among the rules of the Config
}

// Load reads files, in the order of their names. merge accepts one domain in several files. It returns a Config, and
// the remarks on what ratelimit accepts and its author may not expect; omitted is the number of those beyond
// [rulefile.MaxRemarks]. If there are faults, Config is nil. They are those of [rulefile.Reader.Read], two rules whose
// policies have the same name, and more than [MaxRules] rules.
func Load(files []rulefile.File, merge bool) (c *Config, remarks []rulefile.Remark, omitted int, faults strict.Faults) {
	r := rulefile.Reader{Merge: merge}
	for _, f := range files {
		faults = append(faults, r.Read(f)...)
	}
	if faults != nil {
		return nil, r.Remarks, r.Omitted, faults
	}
	l := loader{config: &Config{domains: make(map[string]*domain, len(r.Domains)), named: map[string]*Rule{}}, limits: map[string]*policy.Limits{}}
	for _, d := range r.Domains {
		l.domain(d)
	}
	if l.faults != nil {
		return nil, r.Remarks, r.Omitted, l.faults
	}
	return l.config, r.Remarks, r.Omitted, nil
}

// loader makes a Config of the domains that were read.
type loader struct {
	config *Config
	faults strict.Faults
	// limits has the limits of the rules by their texts. Many rules share them.
	limits map[string]*policy.Limits
}

func (l *loader) domain(d *rulefile.Domain) {
	is := &domain{request: []byte(NameOf(d.Name, "request")), from: len(l.config.rules)}
	l.config.domains[d.Name] = is
	l.config.bytes += stepBytes + int64(len(d.Name)+len(is.request))
	l.level(&is.level, above{domain: d.Name}, d.Descriptors)
	is.to = len(l.config.rules)
}

// above describes the steps above a level.
type above struct {
	domain string
	path   []string // the texts of these steps, the outermost first
	shared bool     // whether one of these steps is shared
}

// level sets the fields of a level from the descriptors in list.
func (l *loader) level(is *level, up above, list []*rulefile.Descriptor) {
	if len(list) == 0 {
		return
	}
	is.steps = make(map[string]*step, len(list))
	for _, d := range list {
		text := d.Text()
		s := &step{text: text, pattern: rulefile.NewPattern(text), exact: d.Value != "" && !strings.Contains(text, "*"), shared: d.Share}
		if !strings.Contains(d.Key, "*") {
			s.prefix = append([]byte(d.Key), '_')
		}
		is.steps[text] = s
		if s.pattern != nil {
			is.patterns = append(is.patterns, s)
		}
		l.config.bytes += stepBytes + 3*int64(len(text))
		here := above{up.domain, append(up.path[:len(up.path):len(up.path)], text), up.shared || d.Share}
		if d.Limit != nil {
			s.rule = l.rule(here, d)
		}
		l.level(&s.level, here, d.Children)
	}
}

// rule returns the rule for the limit of d. at has the step of d.
func (l *loader) rule(at above, d *rulefile.Descriptor) *Rule {
	r := &Rule{
		Domain: at.domain, Path: at.path, Policy: NameOf(at.domain, at.path...), Limit: d.Limit, Limits: l.limitsOf(d.Limit),
		Shadow: d.Shadow, Quota: d.Quota, Shared: at.shared, Metadata: d.Metadata, File: d.File, Line: d.Line,
	}
	r.policy = []byte(r.Policy)
	switch other := l.config.named[r.Policy]; {
	case other != nil:
		l.fault(r, fmt.Sprintf("the policy of %s has the name of that of %s in %s:%d: %s", strict.Clipped(r.path()), strict.Clipped(other.path()), other.File, other.Line, r.Policy))
	case len(l.config.rules) == MaxRules:
		l.fault(r, fmt.Sprintf("there are more than %d limits", MaxRules))
	}
	r.index = len(l.config.rules)
	l.config.named[r.Policy] = r
	l.config.rules = append(l.config.rules, r)
	l.config.bytes += ruleBytes + int64(2*len(r.Policy)+len(r.Limit.Name)+len(d.File))
	return r
}

func (l *loader) fault(r *Rule, text string) {
	if len(l.faults) < strict.MaxFaults {
		l.faults = append(l.faults, strict.Fault{File: r.File, Line: r.Line, Text: text})
	}
}

func (l *loader) limitsOf(is *rulefile.Limit) *policy.Limits {
	text := fmt.Sprint(is.Unlimited, is.Requests, is.Unit)
	limits := l.limits[text]
	if limits == nil {
		if limits = policy.Unlimited(); !is.Unlimited {
			limits = policy.FixedWindow(int64(is.Requests), is.Unit.Seconds())
		}
		l.limits[text] = limits
	}
	return limits
}

// These are estimates of memory in bytes: of a step, and of a rule without its texts, with what a registry of
// policies keeps of it beside its table.
const (
	stepBytes = 200
	ruleBytes = 700
)

// Bytes estimates the memory of c in bytes. It is 0 if c is nil.
func (c *Config) Bytes() int64 {
	if c == nil {
		return 0
	}
	return c.bytes
}

// Rules returns the rules domain by domain, and within a domain in the order of the files. The caller must not change
// them. c may be nil.
func (c *Config) Rules() []*Rule {
	if c == nil {
		return nil
	}
	return c.rules
}

// RulesOf returns the rules of a domain in the order of the files. The caller must not change them. ok reports whether
// there is the domain, which may have no rule. c may be nil.
func (c *Config) RulesOf(name []byte) (rules []*Rule, ok bool) {
	if c == nil {
		return nil, false
	}
	d := c.domains[string(name)]
	if d == nil {
		return nil, false
	}
	return c.rules[d.from:d.to:d.to], true
}

// Len returns the number of rules. c may be nil.
func (c *Config) Len() int { return len(c.Rules()) }

// Has reports whether c has rules for the domain. c may be nil.
func (c *Config) Has(domain []byte) bool { return c != nil && c.domains[string(domain)] != nil }

// Rule returns the rule whose policy has the given name, or nil. c may be nil.
func (c *Config) Rule(policy string) *Rule {
	if c == nil {
		return nil
	}
	return c.named[policy]
}

// Entry returns the entry of the policy of r, which is one of a file.
func (r *Rule) Entry() *policy.Entry {
	return &policy.Entry{
		Kind: policy.Main, File: true, Policy: r.Policy, Flags: policy.Flags{Shadow: r.Shadow, Count: true},
		Limits: r.Limits, Comment: r.comment(), Until: limit.MaxInstant,
	}
}
