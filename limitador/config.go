package limitador

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador/cel"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

const (
	// MaxLimits is the maximum number of limits of a [Config].
	MaxLimits = rls.MaxRules
	// MaxExpressions is the maximum number of conditions and of variables of a limit.
	MaxExpressions = 64
)

// Config has the limits of a file. It never changes, so any goroutine may use it.
type Config struct {
	namespaces map[string][]*Limit
	limits     []*Limit
	named      map[string]*Limit // by the names of their policies
	bytes      int64
}

// Limit is a limit of a file, with the policy that it becomes.
type Limit struct {
	// Namespace is not "". Name and ID are nil if the file has none.
	Namespace string
	Name, ID  *string
	// Max is max_value, from 0, and Seconds is the length of the window, at least 1.
	Max, Seconds int64
	// Conditions and Variables are in the order of the file, without repetitions.
	Conditions, Variables []*cel.Expr
	// Policy is the name of the policy: see [PolicyOf].
	Policy string
	// Limits are the limits of the policy: "SW max seconds FIXED ANCHOR FIRST".
	Limits *policy.Limits
	// File and Line are the place of the limit. Line is counted from 1.
	File string
	Line int

	policy []byte // Policy, as calls need it
	// sorted are the variables by their texts, in the order that keys have them.
	sorted []*cel.Expr
}

// Load reads a limits file. It returns a Config, and remarks on limits that have no effect or no max_value, which
// have the form of faults: at most [strict.MaxFaults], in the order of the lines. If there are faults, Config is nil. They are fields
// that are unknown, missing, there twice or of another type, a limit without a valid window, an expression that
// package cel does not support, two limits whose policies have the same name, and more than [MaxLimits] limits. Of
// two limits that differ in nothing but max_value, name and id, the first counts, as in Limitador.
func Load(f rulefile.File) (c *Config, remarks, faults strict.Faults) {
	var r reader
	limits, faults := r.read(f)
	if faults != nil {
		return nil, nil, faults
	}
	l := loader{config: &Config{namespaces: map[string][]*Limit{}, named: map[string]*Limit{}}, sums: make([]string, 0, len(limits)), same: map[string]*Limit{}, names: map[[2]string]int{}, reader: &r}
	l.load(limits)
	if l.faults != nil {
		return nil, nil, l.faults
	}
	return l.config, r.remarks.Sorted(), nil
}

// loader makes a Config of what was read.
type loader struct {
	config *Config
	reader *reader // for remarks
	faults strict.Faults
	sums   []string
	// same has the limits by their checksums, and names the number of those with a namespace and a name.
	same  map[string]*Limit
	names map[[2]string]int
}

func (l *loader) load(limits []*Limit) {
	kept := limits[:0]
	for _, is := range limits {
		sum := is.sum()
		if other := l.same[sum]; other != nil {
			l.reader.remark(is.File, is.Line, fmt.Sprintf("the limit has no effect: line %d has the same namespace, seconds, conditions and variables", other.Line))
			continue
		}
		l.same[sum] = is
		if is.Name != nil {
			l.names[[2]string{is.Namespace, *is.Name}]++
		}
		kept, l.sums = append(kept, is), append(l.sums, sum)
	}
	for i, is := range kept {
		l.add(is, l.sums[i])
	}
}

// add adds a limit with the checksum sum.
func (l *loader) add(is *Limit, sum string) {
	name := ""
	if is.Name != nil {
		name = *is.Name
	}
	if name != "" && l.names[[2]string{is.Namespace, name}] == 1 {
		sum = ""
	}
	is.Policy = PolicyOf(is.Namespace, name, sum)
	is.policy = []byte(is.Policy)
	switch other := l.config.named[is.Policy]; {
	case other != nil:
		l.fault(is, fmt.Sprintf("the policy has the name of that in line %d: %s", other.Line, is.Policy))
	case len(l.config.limits) == MaxLimits:
		l.fault(is, fmt.Sprintf("there are more than %d limits", MaxLimits))
	}
	l.config.named[is.Policy] = is
	l.config.limits = append(l.config.limits, is)
	l.config.namespaces[is.Namespace] = append(l.config.namespaces[is.Namespace], is)
	l.config.bytes += is.Bytes()
}

func (l *loader) fault(is *Limit, text string) {
	if len(l.faults) < strict.MaxFaults {
		l.faults = append(l.faults, strict.Fault{File: is.File, Line: is.Line, Text: text})
	}
}

// limitBytes is an estimate of the memory of a limit in bytes, without its texts and expressions, with what a
// registry of policies keeps of it beside its table.
const limitBytes = 900

// Bytes estimates the memory of is in bytes.
func (is *Limit) Bytes() int64 {
	n := limitBytes + int64(2*len(is.Policy)+len(is.Namespace))
	for _, text := range []*string{is.Name, is.ID} {
		if text != nil {
			n += int64(len(*text))
		}
	}
	for _, list := range [][]*cel.Expr{is.Conditions, is.Variables} {
		for _, e := range list {
			n += e.Bytes()
		}
	}
	return n
}

// Bytes estimates the memory of c in bytes. It is 0 if c is nil.
func (c *Config) Bytes() int64 {
	if c == nil {
		return 0
	}
	return c.bytes
}

// Limits returns the limits in the order of the file. The caller must not change them. c may be nil.
func (c *Config) Limits() []*Limit {
	if c == nil {
		return nil
	}
	return c.limits
}

// Namespace returns the limits of a namespace in the order of the file, or nil if there is none of that name. The
// caller must not change them. c may be nil. Namespace allocates nothing.
func (c *Config) Namespace(name []byte) []*Limit {
	if c == nil {
		return nil
	}
	return c.namespaces[string(name)]
}

// Limit returns the limit whose policy has the given name, or nil. c may be nil.
func (c *Config) Limit(policy string) *Limit {
	if c == nil {
		return nil
	}
	return c.named[policy]
}

// Entry returns the entry of the policy of the limit, which is one of a file.
func (is *Limit) Entry() *policy.Entry {
	return &policy.Entry{
		Kind: policy.Main, File: true, Policy: is.Policy, Limits: is.Limits, Comment: is.comment(), Until: limit.MaxInstant,
	}
}

// comment returns the comment of the policy: the name, the id and the namespace of the limit.
func (is *Limit) comment() string {
	var text strings.Builder
	if is.Name != nil {
		fmt.Fprintf(&text, "name %s, ", rls.Shown(*is.Name))
	}
	if is.ID != nil {
		fmt.Fprintf(&text, "id %s, ", rls.Shown(*is.ID))
	}
	fmt.Fprintf(&text, "namespace %s", rls.Shown(is.Namespace))
	return rls.Comment(text.String())
}
