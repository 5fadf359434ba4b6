package convert

import (
	"math"
	"strings"

	"github.com/cellserver/cellserver/policy/strict"
)

// descriptor is a descriptor in a file of ratelimit, with the descriptors below it.
type descriptor struct {
	file string
	line int
	// key is not "". A descriptor whose value is "" is for any value.
	key, value string
	limit      *rateLimit
	shadow     bool
	share      bool
	// noted has the names of the fields that do not convert.
	noted    []string
	children []*descriptor
}

// rateLimit holds the fields of a rate_limit.
type rateLimit struct {
	line      int
	requests  int64
	seconds   int64
	unit      string // in lower case
	unlimited bool
	name      string
	replaces  []string
}

// domain holds the descriptors of all files with the same domain.
type domain struct {
	name        string
	file        string // name of the first file of the domain
	descriptors []*descriptor
	// composite is the set of the names under which ratelimit stores the descriptors.
	composite map[string]bool
}

// composite returns the name under which ratelimit stores the descriptor.
func (d *descriptor) composite() string {
	if d.value == "" {
		return d.key
	}
	return d.key + "_" + d.value
}

// exact reports whether the descriptor has exactly one value.
func (d *descriptor) exact() bool { return d.value != "" && !strings.Contains(d.value, "*") }

// prefix returns the part of the value before its star. The second result is false unless the value
// has exactly one star, at its end.
func (d *descriptor) prefix() (string, bool) {
	before, found := strings.CutSuffix(d.value, "*")
	return before, found && !strings.Contains(before, "*")
}

// units are the units of ratelimit in seconds. A month has 30 days there, and a year 365. All
// windows begin at multiples of their length since 1970, as those of FIXED do.
var units = map[string]int64{
	"second": 1, "minute": 60, "hour": 3600, "day": 86400,
	"week": 7 * 86400, "month": 30 * 86400, "year": 365 * 86400,
}

// envoyReader reads the files of ratelimit.
type envoyReader struct {
	r       *strict.Reader
	file    string
	domains []*domain
	result  *Result
}

// maxRead is the maximum size of a file in bytes. It is larger than that of a policy file, because
// overrides may also be set by RL.OVERRIDE SET.
const maxRead = 16 << 20

// read parses the file f, or if f is a ConfigMap, the files in it. It adds their domains to
// e.domains and returns their faults.
func (e *envoyReader) read(f File) strict.Faults {
	root, r, second := strict.ReadLoosely(f.Name, f.Text, maxRead)
	if faults := r.Faults(); faults != nil {
		return faults
	}
	if second > 0 {
		e.result.note(f.Name, second, "a further document", "it is left out, as in ratelimit")
	}
	data, is := configMap(root)
	if !is {
		return e.config(f.Name, root, r)
	}
	var faults strict.Faults
	for name, value := range data.Fields("data") {
		text, ok := value.Inner(name.Text)
		if !ok {
			continue
		}
		inner, r, second := strict.ReadLoosely(f.Name, text, maxRead+value.Line())
		if second > 0 {
			e.result.note(f.Name, second, "a further document", "it is left out, as in ratelimit")
		}
		if bad := r.Faults(); bad != nil {
			faults = append(faults, bad...)
			continue
		}
		faults = append(faults, e.config(f.Name, inner, r)...)
	}
	return sorted(append(faults, r.Faults()...))
}

// configMap returns the field data of root if root is a ConfigMap of Kubernetes. is reports whether
// that is the case and the field exists.
func configMap(root strict.Value) (data strict.Value, is bool) {
	if !root.IsMapping() {
		return data, false
	}
	for key, value := range root.Fields("the text") {
		switch key.Text {
		case "kind":
			kind, _ := value.Scalar("kind")
			is = kind == "ConfigMap"
		case "data":
			data = value
		}
	}
	return data, is && data.IsSet()
}

// config parses one configuration, whose text has the value root, and returns the faults of r.
func (e *envoyReader) config(file string, root strict.Value, r *strict.Reader) strict.Faults {
	e.r, e.file = r, file
	var name string
	var list strict.Value
	for key, value := range root.Fields("the text") {
		switch key.Text {
		case "domain":
			name, _ = value.Scalar("domain")
		case "descriptors":
			list = value
		default:
			r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text))
		}
	}
	if name == "" && root.IsMapping() {
		root.Fault("domain is missing")
	}
	d := e.domain(name, root.Line())
	d.descriptors = append(d.descriptors, e.list(list, d.composite)...)
	return sorted(r.Faults())
}

// domain returns the domain called name, and makes it if there is none yet. If several files have
// the same domain, their descriptors are merged, and domain adds a note for line.
func (e *envoyReader) domain(name string, line int) *domain {
	for _, d := range e.domains {
		if d.name == name {
			e.result.note(e.file, line, "domain "+shown(name), "it is in %s, too: they are one, as with MERGE_DOMAIN_CONFIG", d.file)
			return d
		}
	}
	d := &domain{name: name, file: e.file, composite: map[string]bool{}}
	e.domains = append(e.domains, d)
	return d
}

// list parses a list of descriptors. composite is the set of the composite names so far; list adds
// the names of the parsed descriptors. A name that is in the set already is a fault.
func (e *envoyReader) list(v strict.Value, composite map[string]bool) (list []*descriptor) {
	if !v.IsSet() || v.IsNull() {
		return nil
	}
	for item := range v.Items("descriptors") {
		d := e.descriptor(item)
		if d == nil {
			continue
		}
		if name := d.composite(); composite[name] {
			item.Fault("there are two descriptors %s", strict.Clipped(name))
		} else {
			composite[name] = true
		}
		list = append(list, d)
	}
	return list
}

// descriptor parses v as a descriptor. It returns nil if the descriptor has no key.
func (e *envoyReader) descriptor(v strict.Value) *descriptor {
	d := &descriptor{file: e.file, line: v.Line()}
	for key, value := range v.Fields("a descriptor") {
		switch key.Text {
		case "key":
			d.key, _ = value.Scalar("key")
		case "value":
			d.value, _ = value.Scalar("value")
		case "rate_limit":
			if !value.IsNull() {
				d.limit = e.limit(value)
			}
		case "descriptors":
			d.children = e.list(value, map[string]bool{})
		case "shadow_mode":
			d.shadow = flag(value, key.Text)
		case "share_threshold":
			d.share = flag(value, key.Text)
		case "quota_mode", "detailed_metric", "value_to_metric":
			if flag(value, key.Text) {
				d.noted = append(d.noted, key.Text)
			}
		case "metadata": // metadata may be a value of any type
			d.noted = append(d.noted, key.Text)
		default:
			e.r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text))
		}
	}
	if d.key == "" {
		if v.IsMapping() {
			v.Fault("a descriptor has no key")
		}
		return nil
	}
	if d.share && !strings.Contains(d.value, "*") {
		v.Fault("share_threshold needs a value with *")
	}
	return d
}

// limit parses v as a rate_limit.
func (e *envoyReader) limit(v strict.Value) *rateLimit {
	l := &rateLimit{line: v.Line()}
	unit := ""
	for key, value := range v.Fields("rate_limit") {
		switch key.Text {
		case "unit":
			unit, _ = value.Scalar("unit")
		case "requests_per_unit":
			if !value.IsNull() { // no value means 0
				l.requests, _ = value.Number(key.Text, 0, math.MaxUint32)
			}
		case "unlimited":
			l.unlimited = flag(value, key.Text)
		case "name":
			l.name, _ = value.Scalar("name")
		case "replaces":
			l.replaces = e.replaces(value)
		default:
			e.r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text))
		}
	}
	l.seconds, l.unit = units[strings.ToLower(unit)], strings.ToLower(unit)
	switch {
	case !v.IsMapping():
	case l.unlimited && l.seconds != 0:
		v.Fault("a limit is either unlimited or has a unit")
	case !l.unlimited && l.seconds == 0:
		v.Fault("the unit %s does not exist: it is second, minute, hour, day, week, month or year", strict.Clipped(unit))
	}
	for _, name := range l.replaces {
		if name != "" && name == l.name {
			v.Fault("a limit replaces itself")
		}
	}
	return l
}

// replaces parses v as the list of the limits that a limit replaces, and returns their names.
func (e *envoyReader) replaces(v strict.Value) (list []string) {
	if v.IsNull() {
		return nil
	}
	for item := range v.Items("replaces") {
		name := ""
		for key, value := range item.Fields("an entry of replaces") {
			if key.Text != "name" {
				e.r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text))
				continue
			}
			name, _ = value.Scalar("name")
		}
		if name == "" && item.IsMapping() {
			item.Fault("an entry of replaces has no name")
		}
		list = append(list, name)
	}
	return list
}

// flag returns the value of a field that is true or false. The words of older YAML are accepted,
// and null means false. what is the name of the field for faults.
func flag(v strict.Value, what string) bool {
	if v.IsNull() {
		return false
	}
	b, _ := v.LooseBool(what)
	return b
}
