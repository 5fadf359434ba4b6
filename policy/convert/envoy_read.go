package convert

import (
	"strings"

	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls/rulefile"
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
	requests  int64
	seconds   int64
	unit      string // unit of the window in lower case, such as "minute"
	unlimited bool
	name      string
	replaces  []string
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

// envoyReader reads the files of ratelimit.
type envoyReader struct {
	rulefile.Reader
	result *Result
}

// read parses the file f, or if f is a ConfigMap, the files in it. It adds their domains to e.Domains and
// returns their faults.
func (e *envoyReader) read(f File) strict.Faults {
	root, r, second := strict.ReadLoosely(f.Name, f.Text, rulefile.MaxText)
	if faults := r.Faults(); faults != nil {
		return faults
	}
	e.Further(f.Name, second)
	data, is := configMap(root)
	if !is {
		return e.Config(f.Name, root, r)
	}
	var faults strict.Faults
	for name, value := range data.Fields("data") {
		text, ok := value.Inner(name.Text)
		if !ok {
			continue
		}
		inner, r, second := strict.ReadLoosely(f.Name, text, rulefile.MaxText+value.Line())
		e.Further(f.Name, second)
		if bad := r.Faults(); bad != nil {
			faults = append(faults, bad...)
			continue
		}
		faults = append(faults, e.Config(f.Name, inner, r)...)
	}
	return append(faults, r.Faults()...).Sorted()
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

// noteRemarks adds notes for the remarks on what was read.
func (e *envoyReader) noteRemarks() {
	for i := range e.Remarks {
		switch r := &e.Remarks[i]; r.Kind {
		case rulefile.Further:
			e.result.note(r.File, r.Line, "a further document", "it is left out, as in ratelimit")
		case rulefile.Merged:
			e.result.note(r.File, r.Line, "domain "+shown(r.Name), "it is in %s, too: they are one, as with MERGE_DOMAIN_CONFIG", r.Other)
		case rulefile.Star:
			e.result.note(r.File, r.Line, "key "+shown(r.Name), "its star stands for any text in ratelimit: the caller chooses the policy, which does not know that")
		case rulefile.Idle, rulefile.Repeated: // these remarks are reported as faults elsewhere
		}
	}
	e.result.Left += e.Omitted
}

// descriptors returns the descriptors of list, with those below them. A descriptor that cannot be converted is
// added to faults.
func descriptors(list []*rulefile.Descriptor, faults *strict.Faults) []*descriptor {
	all := make([]*descriptor, len(list))
	for i, is := range list {
		d := &descriptor{file: is.File, line: is.Line, key: is.Key, value: is.Value, shadow: is.Shadow, share: is.Share}
		if is.Share && !strings.Contains(is.Value, "*") {
			*faults = append(*faults, strict.Fault{File: is.File, Line: is.Line, Text: "share_threshold needs a value with *"})
		}
		for _, field := range []struct {
			name string
			has  bool
		}{{"quota_mode", is.Quota}, {"detailed_metric", is.Detailed}, {"value_to_metric", is.ValueToMetric}, {"metadata", is.Metadata != nil}} {
			if field.has {
				d.noted = append(d.noted, field.name)
			}
		}
		if l := is.Limit; l != nil {
			d.limit = &rateLimit{requests: int64(l.Requests), seconds: l.Unit.Seconds(), unit: l.Unit.String(), unlimited: l.Unlimited, name: l.Name, replaces: l.Replaces}
		}
		d.children = descriptors(is.Children, faults)
		all[i] = d
	}
	return all
}
