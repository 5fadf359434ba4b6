package policy

import (
	"slices"
	"strings"
)

// prefix is a node of a radix tree over the prefixes of patterns, and the tree below it. As with
// [hashed], the nodes of a generation may be changed, and older ones belong to tables that may
// be in use. A nil tree is empty.
type prefix struct {
	// here are the entries whose prefix ends here: at most one of each kind. The slice is
	// replaced, never changed.
	here []*kept
	// label is the bytes between the node above and this one. That of the root is empty, and
	// no other is.
	label string
	// first has the first byte of the label of each of below.
	first string
	below []*prefix
	gen   uint64
}

// next returns the node below whose label text begins with, and the bytes behind that, or nil.
func (n *prefix) next(text []byte) (*prefix, []byte) {
	if len(text) == 0 {
		return nil, nil
	}
	i := strings.IndexByte(n.first, text[0])
	if i < 0 {
		return nil, nil
	}
	n = n.below[i]
	if len(text) < len(n.label) || string(text[:len(n.label)]) != n.label {
		return nil, nil
	}
	return n, text[len(n.label):]
}

// get returns the entry of a kind whose prefix is text, or nil.
func (n *prefix) get(text string, kind Kind) *kept {
	for rest := []byte(text); n != nil; n, rest = n.next(rest) {
		if len(rest) > 0 {
			continue
		}
		for _, k := range n.here {
			if k.Kind == kind {
				return k
			}
		}
		return nil
	}
	return nil
}

// set returns the tree with k, whose prefix is text behind the label of n, in the place of
// another of its kind. n is not nil.
func (n *prefix) set(gen uint64, text string, k *kept) *prefix {
	n = n.own(gen)
	if text == "" {
		n.here = append(n.without(k.Kind), k)
		return n
	}
	i := strings.IndexByte(n.first, text[0])
	if i < 0 {
		n.first += text[:1]
		n.below = append(n.below, &prefix{label: text, here: []*kept{k}, gen: gen})
		return n
	}
	child, common := n.below[i], 1
	for common < min(len(child.label), len(text)) && child.label[common] == text[common] {
		common++
	}
	if common < len(child.label) {
		lower := child.own(gen)
		child = &prefix{label: lower.label[:common], first: lower.label[common : common+1], below: []*prefix{lower}, gen: gen}
		lower.label = lower.label[common:]
	}
	n.below[i] = child.set(gen, text[common:], k)
	return n
}

// remove returns the tree without the entry of a kind whose prefix is text behind the label of
// n. There must be one. It returns nil if nothing is left.
func (n *prefix) remove(gen uint64, text string, kind Kind) *prefix {
	n = n.own(gen)
	if text == "" {
		n.here = n.without(kind)
	} else {
		i := strings.IndexByte(n.first, text[0])
		if n.below[i] = n.below[i].remove(gen, text[len(n.below[i].label):], kind); n.below[i] == nil {
			n.below = slices.Delete(n.below, i, i+1)
			n.first = n.first[:i] + n.first[i+1:]
		}
	}
	switch {
	case len(n.here) > 0 || len(n.below) > 1 || n.label == "" && len(n.below) > 0:
		return n
	case len(n.below) == 0:
		return nil
	}
	only := n.below[0].own(gen)
	only.label = n.label + only.label
	return only
}

// each calls f for all entries until it returns false, and reports whether it never did.
func (n *prefix) each(f func(*kept) bool) bool {
	if n == nil {
		return true
	}
	for _, k := range n.here {
		if !f(k) {
			return false
		}
	}
	for _, b := range n.below {
		if !b.each(f) {
			return false
		}
	}
	return true
}

// own returns n if it is of the generation, else a copy that is.
func (n *prefix) own(gen uint64) *prefix {
	if n.gen == gen {
		return n
	}
	c := *n
	c.below, c.gen = slices.Clone(n.below), gen
	return &c
}

// without returns the entries here, but for that of a kind, in new memory.
func (n *prefix) without(kind Kind) []*kept {
	rest := make([]*kept, 0, len(n.here)+1)
	for _, k := range n.here {
		if k.Kind != kind {
			rest = append(rest, k)
		}
	}
	return rest
}
