package rulefile

import (
	"math"
	"strings"

	"github.com/cellserver/cellserver/policy/strict"
)

// MaxRemarks is the maximum number of remarks that a [Reader] keeps.
const MaxRemarks = 100

// Reader reads files. The zero Reader is ready for use.
type Reader struct {
	// Merge accepts several files with the same domain, and joins their lists of descriptors. If it is false, a
	// repeated domain is a fault.
	Merge bool
	// Strict treats remarks of the kinds Idle and Repeated as faults, and leaves out remarks of the kind Values.
	Strict bool
	// Domains are the domains of the files that were read, in the order of the files.
	Domains []*Domain
	// Remarks are the first [MaxRemarks] remarks, and Omitted is the number of the others.
	Remarks []Remark
	Omitted int

	file string
	r    *strict.Reader
	// names has the domains by their names.
	names map[string]*Domain
}

// Read reads the first document of f, and returns its faults in the order of the lines. After a fault Domains
// must not be used.
func (e *Reader) Read(f File) strict.Faults {
	root, r, second := strict.ReadLoosely(f.Name, f.Text, MaxText)
	if faults := r.Faults(); faults != nil {
		return faults
	}
	e.Further(f.Name, second)
	return e.Config(f.Name, root, r)
}

// Further adds the remark that a further document begins at line, unless line is 0.
func (e *Reader) Further(file string, line int) {
	if line > 0 {
		e.remark(Remark{Kind: Further, File: file, Line: line})
	}
}

// Config reads the configuration that has the value root of the text of r. It returns the faults of r in the
// order of the lines.
func (e *Reader) Config(file string, root strict.Value, r *strict.Reader) strict.Faults {
	e.file, e.r = file, r
	var name string
	var list strict.Value
	for key, value := range root.Repeating("the text", e.repeated) {
		switch key.Text {
		case "domain":
			name, _ = value.Word(key.Text)
		case "descriptors":
			list = value
		default:
			e.other(key, value)
		}
	}
	d := &Domain{texts: map[string]bool{}}
	switch {
	case !root.IsMapping():
	case name == "":
		root.Fault("domain is missing")
	default:
		d = e.domain(name, root)
	}
	d.Descriptors = append(d.Descriptors, e.list(list, d.texts)...)
	return r.Faults().Sorted()
}

func (e *Reader) remark(r Remark) {
	if e.Strict && (r.Kind == Idle || r.Kind == Repeated) {
		e.r.Fault(r.Line, "%s", r.Text())
		return
	}
	if len(e.Remarks) == MaxRemarks {
		e.Omitted++
		return
	}
	e.Remarks = append(e.Remarks, r)
}

func (e *Reader) repeated(key strict.Key, first int) {
	e.remark(Remark{Kind: Repeated, File: e.file, Line: key.Line, Name: key.Text, First: first})
}

// fields has the names of the fields that ratelimit knows. It accepts each of them in every
// mapping.
var fields = map[string]bool{
	"domain": true, "descriptors": true, "key": true, "value": true, "rate_limit": true, "unit": true, "requests_per_unit": true,
	"unlimited": true, "name": true, "replaces": true, "shadow_mode": true, "share_threshold": true, "quota_mode": true,
	"detailed_metric": true, "value_to_metric": true, metadata: true,
}

// metadata is the name of the field in which ratelimit accepts any fields.
const metadata = "metadata"

// other reads a field that has no effect at its place. A field that ratelimit does not know is a
// fault.
func (e *Reader) other(key strict.Key, value strict.Value) {
	if !fields[key.Text] {
		e.r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text))
		return
	}
	e.remark(Remark{Kind: Idle, File: e.file, Line: key.Line, Name: key.Text})
	if key.Text != metadata {
		e.idle(value, key.Text)
	}
}

// idle adds the faults that ratelimit finds in a value without an effect: a list of anything but mappings, a
// field that it does not know, and a number that is no integer. what is the name of the field.
func (e *Reader) idle(v strict.Value, what string) {
	switch {
	case v.IsList():
		for item := range v.Items(what) {
			e.idleFields(item, what)
		}
	case v.IsMapping():
		e.idleFields(v, what)
	default:
		v.Word(what)
	}
}

func (e *Reader) idleFields(v strict.Value, what string) {
	for key, value := range v.Repeating("an entry of "+what, func(strict.Key, int) {}) {
		if !fields[key.Text] {
			e.r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text))
		} else if key.Text != metadata {
			e.idle(value, key.Text)
		}
	}
}

// domain returns the domain called name, and makes it if there is none yet. root is the configuration that has
// it.
func (e *Reader) domain(name string, root strict.Value) *Domain {
	if d := e.names[name]; d != nil {
		if e.Merge {
			e.remark(Remark{Kind: Merged, File: e.file, Line: root.Line(), Name: name, Other: d.File})
		} else {
			root.Fault("the domain %s is in %s, too", strict.Clipped(name), d.File)
		}
		return d
	}
	d := &Domain{Name: name, File: e.file, texts: map[string]bool{}}
	if e.names == nil {
		e.names = map[string]*Domain{}
	}
	e.names[name] = d
	e.Domains = append(e.Domains, d)
	return d
}

// list reads a list of descriptors. texts is the set of the texts so far; list adds the texts of the descriptors. A
// text that is in the set already is a fault.
func (e *Reader) list(v strict.Value, texts map[string]bool) (list []*Descriptor) {
	if !v.IsSet() || v.IsNull() {
		return nil
	}
	for item := range v.Items("descriptors") {
		d := e.descriptor(item)
		if d == nil {
			continue
		}
		if text := d.Text(); texts[text] {
			item.Fault("there are two descriptors %s", strict.Clipped(text))
		} else {
			texts[text] = true
		}
		list = append(list, d)
	}
	return list
}

// descriptor reads v as a descriptor. It returns nil if the descriptor has no key.
func (e *Reader) descriptor(v strict.Value) *Descriptor {
	d := &Descriptor{File: e.file, Line: v.Line()}
	for key, value := range v.Repeating("a descriptor", e.repeated) {
		switch key.Text {
		case "key":
			d.Key, _ = value.Word(key.Text)
		case "value":
			d.Value, _ = value.Word(key.Text)
		case "rate_limit":
			d.Limit = nil
			if !value.IsNull() {
				d.Limit = e.limit(value)
			}
		case "descriptors":
			d.Children = e.list(value, map[string]bool{})
		case "shadow_mode":
			d.Shadow = flag(value, key.Text)
		case "share_threshold":
			d.Share = flag(value, key.Text)
		case "quota_mode":
			d.Quota = flag(value, key.Text)
		case "detailed_metric":
			d.Detailed = e.values(key, value)
		case "value_to_metric":
			d.ValueToMetric = e.values(key, value)
		case metadata:
			d.Metadata = plain(value)
		default:
			e.other(key, value)
		}
	}
	switch {
	case d.Key == "":
		if v.IsMapping() {
			v.Fault("a descriptor has no key")
		}
		return nil
	case d.Share && !strings.Contains(d.Text(), "*"):
		v.Fault("share_threshold needs a value with *")
	case strings.Contains(d.Key, "*"):
		e.remark(Remark{Kind: Star, File: e.file, Line: d.Line, Name: d.Key})
	}
	return d
}

// values reads the value of key as a flag that asks for statistics of each value.
func (e *Reader) values(key strict.Key, value strict.Value) bool {
	is := flag(value, key.Text)
	if is && !e.Strict {
		e.remark(Remark{Kind: Values, File: e.file, Line: key.Line, Name: key.Text})
	}
	return is
}

// plain returns the fields of the value of metadata.
func plain(v strict.Value) strict.Struct {
	if !v.IsMapping() {
		if !v.IsNull() {
			v.Fault("metadata must be a mapping")
		}
		return nil
	}
	s, _ := v.Plain().(strict.Struct)
	return s
}

// limit reads v as the value of a rate_limit.
func (e *Reader) limit(v strict.Value) *Limit {
	l := new(Limit)
	unit := ""
	for key, value := range v.Repeating("rate_limit", e.repeated) {
		switch key.Text {
		case "unit":
			unit, _ = value.Word(key.Text)
		case "requests_per_unit":
			if l.Requests = 0; !value.IsNull() {
				n, _ := value.Number(key.Text, 0, math.MaxUint32)
				l.Requests = uint32(n)
			}
		case "unlimited":
			l.Unlimited = flag(value, key.Text)
		case "name":
			l.Name, _ = value.Word(key.Text)
		case "replaces":
			l.Replaces = e.replaces(value)
		default:
			e.other(key, value)
		}
	}
	l.Unit = UnitOf(unit)
	switch {
	case !v.IsMapping():
	case l.Unlimited && l.Unit != 0:
		v.Fault("a limit is either unlimited or has a unit")
	case !l.Unlimited && l.Unit == 0:
		v.Fault("the unit %s does not exist: it is second, minute, hour, day, week, month or year", strict.Clipped(unit))
	}
	for _, name := range l.Replaces {
		if name != "" && name == l.Name {
			v.Fault("a limit replaces itself")
		}
	}
	return l
}

// replaces reads v as the list of the limits that a limit replaces, and returns their names.
func (e *Reader) replaces(v strict.Value) (list []string) {
	if v.IsNull() {
		return nil
	}
	for item := range v.Items("replaces") {
		name := ""
		for key, value := range item.Repeating("an entry of replaces", e.repeated) {
			if key.Text == "name" {
				name, _ = value.Word(key.Text)
			} else {
				e.other(key, value)
			}
		}
		if name == "" && item.IsMapping() {
			item.Fault("an entry of replaces has no name")
		}
		list = append(list, name)
	}
	return list
}

// flag returns the value of a field that is true or false. The words of older YAML are accepted, and null means
// false. what is the name of the field for faults.
func flag(v strict.Value, what string) bool {
	if v.IsNull() {
		return false
	}
	b, _ := v.LooseBool(what)
	return b
}
