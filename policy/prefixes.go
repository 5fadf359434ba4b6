package policy

import (
	"math/bits"
	"slices"
)

// prefix is a node of a radix tree over the prefixes of patterns, with the tree below it. As with
// [hashed], nodes of the present generation may be changed, and older ones belong to tables that
// may be in use. The parameter gen of the methods is the present generation. A nil tree is empty.
type prefix struct {
	// below has the children, ordered by the first bytes of their labels. firsts is the set of
	// these bytes.
	firsts byteSet
	below  []*prefix
	// label has the bytes that the prefix of this node has after the prefix of its parent. Only the
	// label of the root is empty.
	label string
	// here has the entries for the prefix of this node, at most one of each kind. The slice is
	// replaced, never changed.
	here []*kept
	gen  uint64
}

// byteSet is a set of bytes, with a bit for each possible byte.
type byteSet [4]uint64

// has reports in ok whether c is in the set. rank is the number of lower bytes in the set; it is 0
// if c is not in the set.
func (s *byteSet) has(c byte) (rank int, ok bool) {
	word, bit := s[c>>6], uint64(1)<<(c&63)
	if word&bit == 0 {
		return 0, false
	}
	return s.rank(c), true
}

// rank returns the number of bytes in the set that are lower than c.
func (s *byteSet) rank(c byte) int {
	rank := bits.OnesCount64(s[c>>6] & (1<<(c&63) - 1))
	for _, word := range s[:c>>6] {
		rank += bits.OnesCount64(word)
	}
	return rank
}

// flip adds c if it is not in the set, and removes it otherwise.
func (s *byteSet) flip(c byte) { s[c>>6] ^= 1 << (c & 63) }

// next returns the child whose label is a prefix of text, and the rest of text after that label. If
// there is no such child, both are nil.
func (n *prefix) next(text []byte) (*prefix, []byte) {
	if len(text) == 0 {
		return nil, nil
	}
	i, ok := n.firsts.has(text[0])
	if !ok {
		return nil, nil
	}
	n = n.below[i]
	size := len(n.label)
	if size > 1 && (len(text) < size || string(text[1:size]) != n.label[1:]) { // the first byte was compared already
		return nil, nil
	}
	return n, text[size:]
}

// get returns the entry of the given kind with the prefix text, or nil. n is the root, or nil.
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

// set adds k to the tree n and returns the new tree. k replaces an entry with the same kind and
// prefix. text is the part of k's prefix after the label of n. n must not be nil.
func (n *prefix) set(gen uint64, text string, k *kept) *prefix {
	n = n.own(gen)
	if text == "" {
		n.here = append(n.without(k.Kind), k)
		return n
	}
	i, ok := n.firsts.has(text[0])
	if !ok {
		n.below = slices.Insert(n.below, n.firsts.rank(text[0]), &prefix{label: text, here: []*kept{k}, gen: gen})
		n.firsts.flip(text[0])
		return n
	}
	child, common := n.below[i], 1
	for common < min(len(child.label), len(text)) && child.label[common] == text[common] {
		common++
	}
	if common < len(child.label) {
		lower := child.own(gen)
		child = &prefix{label: lower.label[:common], below: []*prefix{lower}, gen: gen}
		lower.label = lower.label[common:]
		child.firsts.flip(lower.label[0])
	}
	n.below[i] = child.set(gen, text[common:], k)
	return n
}

// remove removes an entry of the given kind, which must exist, from the tree n. It returns the new
// tree, or nil if nothing is left. text is the part of the entry's prefix after the label of n.
func (n *prefix) remove(gen uint64, text string, kind Kind) *prefix {
	n = n.own(gen)
	if text == "" {
		n.here = n.without(kind)
	} else {
		i := n.firsts.rank(text[0])
		if n.below[i] = n.below[i].remove(gen, text[len(n.below[i].label):], kind); n.below[i] == nil {
			n.below = slices.Delete(n.below, i, i+1)
			n.firsts.flip(text[0])
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

// each calls f for all entries, until f returns false. The result is false if f has returned false.
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

// own returns n if n is of the generation gen, otherwise a copy of n of that generation.
func (n *prefix) own(gen uint64) *prefix {
	if n.gen == gen {
		return n
	}
	c := *n
	c.below, c.gen = slices.Clone(n.below), gen
	return &c
}

// without returns a copy of n.here without the entry of the given kind.
func (n *prefix) without(kind Kind) []*kept {
	rest := make([]*kept, 0, len(n.here)+1)
	for _, k := range n.here {
		if k.Kind != kind {
			rest = append(rest, k)
		}
	}
	return rest
}
