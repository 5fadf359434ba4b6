// Package rulefile reads the configuration files of envoyproxy/ratelimit. It accepts the files that ratelimit
// accepts, and refuses those that ratelimit refuses.
//
// A [Reader] reads files one after another into [Domain] values. It knows neither how descriptors are matched
// nor what becomes of a limit. Faults are errors, as in ratelimit. A [Remark] is about a part that ratelimit
// accepts although it has no effect, or not the likely one.
package rulefile

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/policy/strict"
)

// MaxText is the maximum size of a file in bytes.
const MaxText = 16 << 20

// File is a file to read.
type File struct {
	// Name is the name of the file in faults and remarks.
	Name string
	// Text is the content of the file: at most [MaxText] bytes.
	Text []byte
}

// Domain holds the descriptors of all files with the same domain.
type Domain struct {
	// Name is the name of the domain, which is not "". It may have any characters.
	Name string
	// File is the name of the first file of the domain.
	File string
	// Descriptors are in the order of the files.
	Descriptors []*Descriptor

	// texts is the set of the texts of Descriptors.
	texts map[string]bool
}

// Descriptor is a descriptor of a file, with the descriptors that it contains.
type Descriptor struct {
	// File and Line say where the descriptor is. Line is counted from 1.
	File string
	Line int
	// Key and Value are the texts of the descriptor. Key is not "". If Value is "", the descriptor
	// is for any value.
	Key, Value string
	// Limit is the rate_limit of the descriptor, or nil.
	Limit *Limit
	// Shadow, Share and Quota are the fields shadow_mode, share_threshold and quota_mode.
	Shadow, Share, Quota bool
	// Detailed and ValueToMetric are the fields detailed_metric and value_to_metric.
	Detailed, ValueToMetric bool
	// Metadata is the metadata of the descriptor, or nil.
	Metadata strict.Struct
	// Children are the nested descriptors, in the order of the file.
	Children []*Descriptor
}

// Text returns the name under which ratelimit stores the descriptor: "key" or "key_value".
func (d *Descriptor) Text() string {
	if d.Value == "" {
		return d.Key
	}
	return d.Key + "_" + d.Value
}

// Limit holds the fields of a rate_limit.
type Limit struct {
	// Requests is the number of units in a window.
	Requests uint32
	// Unit is the length of the window. It is 0 if the limit is unlimited.
	Unit Unit
	// Unlimited says that there is no limit.
	Unlimited bool
	// Name is the name by which other limits can replace this one, or "".
	Name string
	// Replaces has the names of the limits that this one replaces.
	Replaces []string
}

// Unit is the length of a window. The numbers are the same as of RateLimitResponse.RateLimit.Unit in Envoy's API.
type Unit uint8

// These are the units. A month has 30 days, and a year 365.
const (
	Second Unit = 1 + iota
	Minute
	Hour
	Day
	Month
	Year
	Week
)

var units = [...]struct {
	name    string
	seconds int64
}{
	{"unknown", 0},
	{"second", 1},
	{"minute", 60},
	{"hour", 3600},
	{"day", 86400},
	{"month", 30 * 86400},
	{"year", 365 * 86400},
	{"week", 7 * 86400},
}

// UnitOf returns the unit with the given name in letters of any case. It returns 0 if there is none.
func UnitOf(name string) Unit {
	for u := Second; u.Valid(); u++ {
		if strings.EqualFold(name, units[u].name) {
			return u
		}
	}
	return 0
}

// Valid reports whether u is one of the units.
func (u Unit) Valid() bool { return u >= Second && int(u) < len(units) }

// Seconds returns the length of a window in seconds, or 0 if u is not valid.
func (u Unit) Seconds() int64 {
	if !u.Valid() {
		return 0
	}
	return units[u].seconds
}

// String returns the name of the unit in lower case, or "unknown" if u is not valid.
func (u Unit) String() string {
	if !u.Valid() {
		return units[0].name
	}
	return units[u].name
}

// Kind is the kind of a [Remark].
type Kind uint8

// These are the kinds of remarks.
const (
	// Idle is a known field at a place where it has no effect.
	Idle Kind = iota
	// Repeated is a field that occurs twice. The last one counts.
	Repeated
	// Further is a document after the first one in a file, which is not read.
	Further
	// Star is a key with a star, which stands for any text as it does in a value.
	Star
	// Merged is a domain that is also in another file.
	Merged
	// Values is a field that asks for statistics of each value, which this server does not have.
	Values
)

// Remark is about a part of a file that ratelimit accepts, but that may not have the effect that its author expects.
type Remark struct {
	Kind Kind
	// File and Line say where the part is. Line is counted from 1.
	File string
	Line int
	// Name is the name of the field or of the domain, or the key of the descriptor. It is "" for Further.
	Name string
	// First is the line of the first field, if the kind is Repeated. Other is the other file with the domain, if the
	// kind is Merged.
	First int
	Other string
}

// Text returns the remark without file and line.
func (r *Remark) Text() string {
	switch name := strict.Clipped(r.Name); r.Kind {
	case Idle:
		return "the field " + name + " has no effect here"
	case Repeated:
		return strict.Twice(r.Name, r.First) + ", and the last one counts"
	case Further:
		return "a further document is not read"
	case Star:
		return "the key " + name + " has a star, which stands for any text"
	case Values:
		return "the field " + name + " has no effect on metrics: RL.TOP shows the values of a rule"
	default:
		return "the domain " + name + " is in " + r.Other + ", too: the files are merged"
	}
}

// String returns "file:line: text".
func (r *Remark) String() string { return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Text()) }
