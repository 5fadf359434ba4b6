package strict

import (
	"encoding/base64"
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	binaryTag = "!!binary"
	boolTag   = "!!bool"
	floatTag  = "!!float"
	intTag    = "!!int"
	mergeTag  = "!!merge"
	nullTag   = "!!null"
	stringTag = "!!str"
)

// Value is a mapping, a list or a scalar of a text. A method that reads one of these types adds a
// fault if the value has another type. The parameter what names the value in the fault.
type Value struct {
	node *yaml.Node
	r    *Reader
}

// Line returns the line at which the value begins, from 1.
func (v Value) Line() int { return v.node.Line }

// Fault adds a fault at the line of the value, with the text of format and args. For an alias it
// does nothing, since [Read] has already added a fault for the alias.
func (v Value) Fault(format string, args ...any) {
	if v.node.Kind != yaml.AliasNode {
		v.r.Fault(v.node.Line, format, args...)
	}
}

// IsSet reports whether v is a value of a text, and not the zero Value.
func (v Value) IsSet() bool { return v.node != nil }

// IsNull reports whether the value is empty, null or ~. v must not be the zero Value.
func (v Value) IsNull() bool { return v.node.Kind == yaml.ScalarNode && v.node.Tag == nullTag }

// IsMapping reports whether the value is a mapping.
func (v Value) IsMapping() bool { return v.node.Kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (v Value) IsList() bool { return v.node.Kind == yaml.SequenceNode }

// Fields iterates over the keys and values of a mapping. For any other value it adds a fault and
// yields nothing. A key is its literal text: 4711 and true are keys of these characters. Duplicate
// keys, and keys that are not scalars, are faults and omitted.
func (v Value) Fields(what string) iter.Seq2[Key, Value] {
	return v.fields(what, func(key Key, first int, name Value) bool {
		name.Fault("%s", Twice(key.Text, first))
		return false
	})
}

// Repeating does what Fields does, but also yields fields whose keys the mapping has had before. It calls
// repeated for each of them, with the line of the first field of that key. A reader that stores what it is
// given takes the last of several fields.
func (v Value) Repeating(what string, repeated func(key Key, first int)) iter.Seq2[Key, Value] {
	return v.fields(what, func(key Key, first int, _ Value) bool {
		repeated(key, first)
		return true
	})
}

// Twice returns the text of the fault that a mapping has the key text twice, first in the line first.
func Twice(text string, first int) string {
	return fmt.Sprintf("%s is there twice: its first is in line %d", Clipped(text), first)
}

// fields iterates over the keys and values of a mapping. For a key that occurred before, in the line first, it calls
// again; the result of again says whether to yield the field.
func (v Value) fields(what string, again func(key Key, first int, name Value) bool) iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		if v.node.Kind != yaml.MappingNode {
			v.Fault("%s must be a mapping, not %s", what, v.kind())
			return
		}
		lines := make(map[string]int, len(v.node.Content)/2)
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			name := Value{v.node.Content[i], v.r}
			text, ok := name.key()
			if !ok {
				continue
			}
			key := Key{Text: text, Line: name.Line()}
			if first, twice := lines[text]; !twice {
				lines[text] = key.Line
			} else if !again(key, first, name) {
				continue
			}
			if !yield(key, Value{v.node.Content[i+1], v.r}) {
				return
			}
		}
	}
}

// Key is the key of a field.
type Key struct {
	Text string
	Line int
}

func (v Value) key() (string, bool) {
	switch {
	case v.node.Kind != yaml.ScalarNode:
		v.Fault("a key must be text, not %s", v.kind())
		return "", false
	case v.node.Tag == mergeTag:
		v.Fault("a merge key (<<) is not allowed: write the fields themselves")
		return "", false
	case v.node.Tag == nullTag:
		v.Fault("a key must not be null: write quotes around it")
		return "", false
	}
	return v.text()
}

// Items iterates over the values of a list. For any other value it adds a fault and yields nothing.
func (v Value) Items(what string) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.node.Kind != yaml.SequenceNode {
			v.Fault("%s must be a list, not %s", what, v.kind())
			return
		}
		for _, n := range v.node.Content {
			if !yield(Value{n, v.r}) {
				return
			}
		}
	}
}

// String returns the text of a scalar that YAML reads as text. For any other value, such as a
// number or true without quotes, String adds a fault and ok is false.
func (v Value) String(what string) (text string, ok bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.Tag != stringTag && v.node.Tag != binaryTag {
		advice := ""
		if v.node.Kind == yaml.ScalarNode && !v.IsNull() {
			advice = ": write quotes around it"
		}
		v.Fault("%s must be text, not %s%s", what, v.kind(), advice)
		return "", false
	}
	return v.text()
}

// Scalar returns the text of any scalar as it is written, even of a number or of true. For null,
// text is "". For a mapping or a list, Scalar adds a fault and ok is false.
func (v Value) Scalar(what string) (text string, ok bool) {
	switch {
	case v.node.Kind != yaml.ScalarNode:
		v.Fault("%s must be text, not %s", what, v.kind())
		return "", false
	case v.IsNull():
		return "", true
	}
	return v.text()
}

// Word does what Scalar does, but a number with a fraction or an exponent, or one that int64 cannot hold, is a
// fault: programs write such numbers in different ways.
func (v Value) Word(what string) (text string, ok bool) {
	var n int64
	if v.node.Kind == yaml.ScalarNode && (v.node.Tag == floatTag || v.node.Tag == intTag && v.node.Decode(&n) != nil) {
		v.Fault("%s must be text, not the number %s: write quotes around it", what, Clipped(v.node.Value))
		return "", false
	}
	return v.Scalar(what)
}

// Bool returns a value that is true or false. For any other value, Bool adds a fault and ok is
// false. The words of older YAML, such as yes and on, count as text.
func (v Value) Bool(what string) (b, ok bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.Tag != boolTag {
		v.Fault("%s must be true or false, not %s", what, v.kind())
		return false, false
	}
	return strings.EqualFold(v.node.Value, "true"), true
}

// LooseBool does what Bool does, but also accepts the unquoted words of older YAML, such as yes and
// on.
func (v Value) LooseBool(what string) (b, ok bool) {
	var given bool
	if v.node.Kind == yaml.ScalarNode && v.node.Style == 0 && !v.IsNull() && v.node.Decode(&given) == nil {
		return given, true
	}
	return v.Bool(what)
}

// Plain returns the value as data: nil, true or false, a float64, a string, a []any, or a [Struct] for a
// mapping. The unquoted words of older YAML, such as yes and on, are true or false. A date is text. Of several
// fields with the same key, the last counts. Keys that are not scalars are faults and omitted.
func (v Value) Plain() any {
	switch v.node.Kind {
	case yaml.MappingNode:
		return v.plainFields()
	case yaml.SequenceNode:
		list := make([]any, 0, len(v.node.Content))
		for item := range v.Items("a list") {
			list = append(list, item.Plain())
		}
		return list
	}
	var number float64
	var given bool
	switch tag := v.node.Tag; {
	case tag == nullTag:
		return nil
	case tag != binaryTag && v.node.Style == 0 && v.node.Decode(&given) == nil:
		return given
	case (tag == intTag || tag == floatTag) && v.node.Decode(&number) == nil:
		return number
	}
	text, _ := v.text()
	return text
}

func (v Value) plainFields() Struct {
	s := make(Struct, 0, len(v.node.Content)/2)
	at := make(map[string]int, cap(s))
	for key, value := range v.Repeating("a mapping", func(Key, int) {}) {
		i, again := at[key.Text]
		if !again {
			i, at[key.Text] = len(s), len(s)
			s = append(s, Field{Name: key.Text})
		}
		s[i].Value = value.Plain()
	}
	return s
}

// Struct is a mapping as data. No two fields have the same name.
type Struct []Field

// Field is a field of a [Struct]. Value has one of the types that [Value.Plain] returns.
type Field struct {
	Name  string
	Value any
}

// Number returns an integer from least to most. For any other value, Number adds a fault and ok is
// false.
func (v Value) Number(what string, least, most int64) (n int64, ok bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.Tag != intTag {
		v.Fault("%s must be a whole number, not %s", what, v.kind())
		return 0, false
	}
	if err := v.node.Decode(&n); err != nil || n < least || n > most {
		v.Fault("%s must be from %d to %d, not %s", what, least, most, Clipped(v.node.Value))
		return 0, false
	}
	return n, true
}

// text returns the text of a scalar, decoded if it is !!binary. If the base64 is not valid, text
// adds a fault and returns false.
func (v Value) text() (string, bool) {
	if v.node.Tag != binaryTag {
		return v.node.Value, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(v.node.Value)
	if err != nil {
		v.Fault("a !!binary value must be base64")
		return "", false
	}
	return string(b), true
}

// kind returns the type of the value, or for a scalar its text, in words for a fault.
func (v Value) kind() string {
	switch v.node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch v.node.Tag {
	case nullTag:
		return "empty"
	case stringTag:
		return "the text " + Clipped(v.node.Value)
	case binaryTag:
		return "bytes"
	}
	return Clipped(v.node.Value)
}
