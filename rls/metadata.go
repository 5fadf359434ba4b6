package rls

import (
	"strings"

	"github.com/cellserver/cellserver/policy/strict"
)

// Struct is a google.protobuf.Struct. Its values are nil, true, false, a float64, a string, a []any of such values,
// or a Struct.
type Struct = strict.Struct

// metadata returns dynamic_metadata: the request, and the metadata of the rules whose descriptors have passed. Of
// several values of a field the first counts, and mappings are merged.
func (p *Plan) metadata(statuses []Status) Struct {
	r := p.request
	list := make([]any, len(r.Descriptors))
	var merged Struct
	for i := range r.Descriptors {
		d := &r.Descriptors[i]
		entries := make([]any, len(d.Entries))
		for j := range d.Entries {
			entries[j] = valid(d.Entries[j].String())
		}
		is := Struct{{Name: "entries", Value: entries}}
		if d.HasHits {
			is = append(is, strict.Field{Name: "hitsAddend", Value: float64(d.Hits)})
		}
		list[i] = is
		if rule := p.subjects[i].rule; rule != nil && statuses[i].Code == OK {
			merged = merge(merged, rule.Metadata)
		}
	}
	m := Struct{{Name: "domain", Value: valid(string(r.Domain))}, {Name: "descriptors", Value: list}}
	if r.Hits > 0 {
		m = append(m, strict.Field{Name: "hitsAddend", Value: float64(r.Hits)})
	}
	if len(merged) > 0 {
		m = append(m, strict.Field{Name: "metadata", Value: merged})
	}
	return m
}

// valid returns text with U+FFFD for bytes that are not UTF-8, which a message must not contain.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// merge returns a with the fields of b that a does not have. Fields of both that are mappings are merged. It
// changes neither a nor b.
func merge(a, b Struct) Struct {
	if len(a) == 0 {
		return b
	}
	all := a[:len(a):len(a)]
	copied := false
	for _, f := range b {
		at := indexOf(a, f.Name)
		if at < 0 {
			all = append(all, f)
			copied = true
			continue
		}
		left, ok := a[at].Value.(Struct)
		right, both := f.Value.(Struct)
		if !ok || !both {
			continue
		}
		if !copied {
			all, copied = append(Struct{}, all...), true
		}
		all[at].Value = merge(left, right)
	}
	return all
}

func indexOf(s Struct, name string) int {
	for i := range s {
		if s[i].Name == name {
			return i
		}
	}
	return -1
}
