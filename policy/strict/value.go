package strict

import (
	"encoding/base64"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	binaryTag = "!!binary"
	boolTag   = "!!bool"
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
			if first, twice := lines[text]; twice {
				name.Fault("%s is there twice: its first is in line %d", Clipped(text), first)
				continue
			}
			lines[text] = name.Line()
			if !yield(Key{Text: text, Line: name.Line()}, Value{v.node.Content[i+1], v.r}) {
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
	if v.node.Kind == yaml.ScalarNode && !v.IsNull() && v.node.Decode(&given) == nil {
		return given, true
	}
	return v.Bool(what)
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
