package report

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

var errReply = errors.New("a reply cannot be read")

// maxDepth is the maximum nesting of lists in a reply: Lua's maximum within EXEC.
const maxDepth = 130

// decodeReply converts a reply in RESP3 to a value for JSON: nil, a bool, a number, a [Key], a
// list, an object, or a [RunReply] for an error.
func decodeReply(b []byte) (any, error) {
	d := decoder{b}
	return d.value(0)
}

type decoder struct{ rest []byte }

// line reads the next line. kind is its first byte and text the rest without the line end. An empty
// or incomplete line is an error.
func (d *decoder) line() (kind byte, text string, err error) {
	i := bytes.Index(d.rest, []byte("\r\n"))
	if i < 1 {
		return 0, "", errReply
	}
	kind, text = d.rest[0], string(d.rest[1:i])
	d.rest = d.rest[i+2:]
	return kind, text, nil
}

// bulk reads a bulk string and its line end. length is its length as text. For the length -1 it
// returns nil.
func (d *decoder) bulk(length string) (any, error) {
	n, err := strconv.Atoi(length)
	if n == -1 {
		return nil, nil //nolint:nilnil // null is a value
	}
	if err != nil || n < 0 || n > len(d.rest)-2 {
		return nil, errReply
	}
	text := d.rest[:n]
	d.rest = d.rest[n+2:]
	return Key(text), nil
}

func (d *decoder) value(depth int) (any, error) {
	kind, text, err := d.line()
	switch {
	case err != nil:
		return nil, errReply
	case depth > maxDepth:
		return nil, errDepth
	}
	switch kind {
	case '+', '(':
		return Key(text), nil
	case '-':
		return RunReply{Error: text}, nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case ',':
		f, err := strconv.ParseFloat(text, 64)
		if math.IsInf(f, 0) || math.IsNaN(f) { // JSON has no number for infinities and NaN
			return Key(text), nil
		}
		return f, err
	case '#':
		return text == "t", nil
	case '_':
		return nil, nil //nolint:nilnil // null is a value
	case '$':
		return d.bulk(text)
	case '=':
		v, err := d.bulk(text)
		if k, is := v.(Key); is && len(k) >= 4 {
			return k[4:], err // after "txt:"
		}
		return v, err
	case '!':
		v, err := d.bulk(text)
		k, _ := v.(Key)
		return RunReply{Error: string(k)}, err
	case '*', '~', '>':
		return d.list(text, depth)
	case '%':
		return d.object(text, depth)
	}
	return nil, errReply
}

// length parses text as the number of values that follow; -1 means null. The number is bounded by
// the rest of the reply, since each value takes at least three bytes.
func (d *decoder) length(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > len(d.rest)/3 {
		return 0, errReply
	}
	return n, nil
}

func (d *decoder) list(text string, depth int) (any, error) {
	n, err := d.length(text)
	if err != nil || n < 0 {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (d *decoder) object(text string, depth int) (any, error) {
	n, err := d.length(text)
	if err != nil || n < 0 {
		return nil, err
	}
	object := make(map[string]any, n)
	for range n {
		name, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		switch name := name.(type) {
		case Key:
			object[string(name)] = v
		case int64:
			object[strconv.FormatInt(name, 10)] = v
		default:
			return nil, errReply
		}
	}
	return object, nil
}
