// Package strict reads YAML without ambiguous features, and reports each fault with its line.
//
// [Read] parses a text into a [Value], and the methods of that type read mappings, lists and
// scalars. They collect [Faults]. A text is one document in UTF-8. It has no anchors, aliases or
// merge keys, no tags except !!binary, and no duplicate keys. So a short text stays small when it
// is read. [ReadLoosely] is for texts of other programs, which may use more of YAML. The package
// does not know the fields of any format.
package strict

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/cellserver/cellserver/yield"
)

// maxDepth is the maximum nesting of mappings and lists.
const maxDepth = 100

// Read parses a text of up to most bytes. name is the name of its file. If the returned Reader has
// faults already, the Value must not be used.
func Read(name string, text []byte, most int) (Value, *Reader) {
	root, r, second := read(name, text, most)
	switch {
	case second != nil && second.err != nil:
		r.syntax(second.err)
	case second != nil:
		r.Fault(second.line, "a second document begins here, and one is all there may be")
	}
	if root.IsSet() {
		r.check(root.node, 1)
	}
	return root, r
}

// following describes what follows the first document: the line at which the second document
// begins, or the error with which it could not be parsed.
type following struct {
	line int
	err  error
}

// read parses the first document of text. The third result describes what follows it, or is nil if
// nothing does. After a fault the Value is not set.
func read(name string, text []byte, most int) (Value, *Reader, *following) {
	r := &Reader{name: name}
	if len(text) > most {
		r.Fault(1, "the text is longer than %d bytes", most)
		return Value{}, r, nil
	}
	if at := invalid(text); at >= 0 {
		r.Fault(1+bytes.Count(text[:at], []byte("\n")), "the text is not UTF-8")
		return Value{}, r, nil
	}
	decoder := yaml.NewDecoder(yielding{bytes.NewReader(text)})
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.Fault(1, "the text is empty")
		return Value{}, r, nil
	case err != nil:
		r.syntax(err)
		return Value{}, r, nil
	}
	root := Value{node: document.Content[0], r: r}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return root, r, &following{line: second.Line, err: err}
	}
	return root, r, nil
}

// yielding is a reader that lets other goroutines run between its reads. The YAML library reads
// some hundred bytes at a time, and parsing 1 MiB takes long enough to delay others.
type yielding struct{ text io.Reader }

func (y yielding) Read(b []byte) (int, error) {
	yield.Processor()
	return y.text.Read(b)
}

// invalid returns the offset of the first byte that is not UTF-8, or -1.
func invalid(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; ; {
		c, size := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// located matches the line in an error of the YAML library.
var located = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// syntax adds a fault for err, an error of the YAML library.
func (r *Reader) syntax(err error) {
	line, text := faultOf(err)
	r.Fault(line, "the YAML is not valid: %s", text)
}

// faultOf returns the line and the text of an error of the YAML library. If the error names no
// line, line is 1.
func faultOf(err error) (line int, text string) {
	line, text = 1, err.Error()
	if m := located.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	return line, text
}

// check adds faults for features of YAML with hidden effects in n and below it, and for values that
// are nested too deep. depth is the depth of n, from 1.
func (r *Reader) check(n *yaml.Node, depth int) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.Fault(n.Line, "an alias (*name) is not allowed: write the value itself")
		return
	case n.Anchor != "":
		r.Fault(n.Line, "an anchor (&name) is not allowed: write the value where it is needed")
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != binaryTag:
		r.Fault(n.Line, "a tag is not allowed, but !!binary")
	case depth > maxDepth:
		r.Fault(n.Line, "mappings and lists are nested deeper than %d", maxDepth)
		return
	}
	for _, child := range n.Content {
		r.check(child, depth+1)
	}
}
