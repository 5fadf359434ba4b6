package cel

import (
	"bytes"
	"math"
	"strconv"

	"github.com/cellserver/cellserver/rls"
)

// kind is the type of a node.
type kind uint8

const (
	isNull kind = iota
	isBool
	isNumber
	isText
	// isMap is a descriptor, and isDescriptors is the list of all.
	isMap
	isDescriptors
	// isList is a list that is written out.
	isList
)

// String returns the type with an article, for an error.
func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a descriptor", "the list of descriptors", "a list"}[k]
}

// op is what a node does with its parts.
type op uint8

const (
	constant op = iota
	descriptors
	descriptor // a: the list of all, b: the index
	field      // a: the descriptor, b: the key
	has        // as field
	list
	size
	not
	and
	or
	equal
	unequal
	less
	lessOrEqual
	greater
	greaterOrEqual
	inList
	inMap // a: the key, b: the descriptor
	startsWith
	endsWith
	contains
	add
)

// node is a part of an expression.
type node struct {
	op   op
	kind kind
	a, b *node
	// items are the elements of a list.
	items []*node
	// value is that of a constant.
	value value
}

// value is what a node is evaluated to. Its type is that of the node.
type value struct {
	text []byte
	// number is a number, 1 for true, or the index of a descriptor.
	number int64
}

func truth(b bool) value {
	if b {
		return value{number: 1}
	}
	return value{}
}

// Expr is an expression. It never changes, so any goroutine may use it.
type Expr struct {
	source string
	root   *node
	nodes  int
}

// String returns the text of the expression.
func (e *Expr) String() string { return e.source }

// Bytes estimates the memory of the expression in bytes.
func (e *Expr) Bytes() int64 {
	const perNode = 128
	return int64(2*len(e.source) + perNode*e.nodes)
}

// Scope has what expressions are about, and memory for their evaluation. One goroutine uses a Scope for one request
// after another. The zero Scope has no descriptors.
type Scope struct {
	Descriptors []rls.Descriptor

	joined []byte // texts that were joined
}

// Bytes returns the memory that s keeps for evaluations, in bytes.
func (s *Scope) Bytes() int { return cap(s.joined) }

// Holds reports whether the condition holds. One without a value does not. It allocates nothing once the memory of s
// is large enough.
func (e *Expr) Holds(s *Scope) bool {
	s.joined = s.joined[:0]
	v, ok := e.root.eval(s)
	return ok && v.number == 1
}

// AppendValue appends the value of the variable to dst, as Limitador writes it. exists is false if it has none;
// then dst is as it was.
func (e *Expr) AppendValue(dst []byte, s *Scope) (_ []byte, exists bool) {
	s.joined = s.joined[:0]
	v, ok := e.root.eval(s)
	if !ok {
		return dst, false
	}
	switch e.root.kind {
	case isNull:
		return append(dst, "null"...), true
	case isBool:
		return strconv.AppendBool(dst, v.number == 1), true
	case isNumber:
		return strconv.AppendInt(dst, v.number, 10), true
	default:
		return append(dst, v.text...), true
	}
}

// lookup returns the value of the given key in descriptor i. Of several entries with the key the last counts.
func (s *Scope) lookup(i int64, key []byte) (text []byte, exists bool) {
	entries := s.Descriptors[i].Entries
	for j := len(entries) - 1; j >= 0; j-- {
		if bytes.Equal(entries[j].Key, key) {
			return entries[j].Value, true
		}
	}
	return nil, false
}

// length returns the number of keys of descriptor i.
func (s *Scope) length(i int64) (n int64) {
	entries := s.Descriptors[i].Entries
	for j := range entries {
		again := false
		for k := range j {
			again = again || bytes.Equal(entries[j].Key, entries[k].Key)
		}
		if !again {
			n++
		}
	}
	return n
}

// eval returns the value of n. ok is false if it has none.
func (n *node) eval(s *Scope) (v value, ok bool) {
	switch n.op {
	case constant:
		return n.value, true
	case descriptors:
		return value{number: int64(len(s.Descriptors))}, true
	case list:
		return n.evalItems(s)
	}
	if v, ok = n.a.eval(s); !ok {
		return value{}, false
	}
	if n.b == nil {
		return n.evalOne(v, s)
	}
	switch {
	case n.op == and && v.number == 0, n.op == or && v.number == 1:
		return v, true
	case n.op == inList:
		return n.evalIn(v, s)
	}
	w, ok := n.b.eval(s)
	if !ok {
		return value{}, false
	}
	return n.evalTwo(v, w, s)
}

// evalItems evaluates the elements of a list, whose value is their number.
func (n *node) evalItems(s *Scope) (value, bool) {
	for _, item := range n.items {
		if _, ok := item.eval(s); !ok {
			return value{}, false
		}
	}
	return value{number: int64(len(n.items))}, true
}

// evalIn reports whether v is in the list n.b. All elements are evaluated, as one without a value leaves the whole
// without one.
func (n *node) evalIn(v value, s *Scope) (value, bool) {
	found := false
	for _, item := range n.b.items {
		w, ok := item.eval(s)
		if !ok {
			return value{}, false
		}
		found = found || same(n.a.kind, item.kind, v, w)
	}
	return truth(found), true
}

// evalOne is eval for a node with one part, whose value is v.
func (n *node) evalOne(v value, s *Scope) (value, bool) {
	switch {
	case n.op == not:
		return value{number: 1 - v.number}, true
	case n.a.kind == isText: // the others are sizes
		return value{number: int64(len(v.text))}, true
	case n.a.kind == isMap:
		return value{number: s.length(v.number)}, true
	default:
		return v, true // the value of a list is its size
	}
}

// evalTwo is eval for a node with two parts, whose values are v and w.
func (n *node) evalTwo(v, w value, s *Scope) (value, bool) {
	switch n.op {
	case and, or:
		return w, true
	case descriptor:
		return w, w.number < v.number // no number is negative
	case field:
		is, exists := s.lookup(v.number, w.text)
		return value{text: is}, exists
	case has:
		_, exists := s.lookup(v.number, w.text)
		return truth(exists), true
	case inMap:
		_, exists := s.lookup(w.number, v.text)
		return truth(exists), true
	case equal:
		return truth(same(n.a.kind, n.b.kind, v, w)), true
	case unequal:
		return truth(!same(n.a.kind, n.b.kind, v, w)), true
	case startsWith:
		return truth(bytes.HasPrefix(v.text, w.text)), true
	case endsWith:
		return truth(bytes.HasSuffix(v.text, w.text)), true
	case contains:
		return truth(bytes.Contains(v.text, w.text)), true
	case add:
		return n.sum(v, w, s)
	default:
		return truth(n.ordered(v, w)), true
	}
}

// sum returns the sum of v and w. Numbers whose sum is too large have none.
func (n *node) sum(v, w value, s *Scope) (value, bool) {
	if n.kind == isNumber {
		if v.number > math.MaxInt64-w.number { // no number is negative
			return value{}, false
		}
		return value{number: v.number + w.number}, true
	}
	if len(v.text)+len(w.text) > maxJoined-len(s.joined) {
		return value{}, false
	}
	from := len(s.joined)
	s.joined = append(append(s.joined, v.text...), w.text...)
	return value{text: s.joined[from:len(s.joined):len(s.joined)]}, true
}

// maxJoined is the maximum length of the texts that an expression joins, in bytes. A longer text has no value.
const maxJoined = 64 << 10

// ordered compares v and w.
func (n *node) ordered(v, w value) bool {
	c := bytes.Compare(v.text, w.text)
	if n.a.kind == isNumber {
		c = 0
		switch {
		case v.number < w.number:
			c = -1
		case v.number > w.number:
			c = 1
		}
	}
	switch n.op {
	case less:
		return c < 0
	case lessOrEqual:
		return c <= 0
	case greater:
		return c > 0
	default:
		return c >= 0
	}
}

// same reports whether v and w, of the types k and l, are equal. null is equal to null alone.
func same(k, l kind, v, w value) bool {
	return k == l && v.number == w.number && bytes.Equal(v.text, w.text)
}
