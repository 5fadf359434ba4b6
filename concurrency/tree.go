package concurrency

import "bytes"

// tree is one of the two trees over the nodes of an index. It is a weight-balanced tree, in which
// every node stores the size of its subtree. The sizes are used for balancing and, in the tree by
// expiry, for counting expired members and finding the member with a given index. In mode Places,
// the nodes of the tree by expiry also store the sum of the places in their subtree.
//
// The weight of a side of a node is the size of its subtree plus one. A node is balanced while the
// weight of neither side is more than three times that of the other. A rotation is double if the
// weight of the inner grandchild is at least twice that of the outer one. Hirai and Yamamoto proved
// that these integer parameters, <3, 2>, are correct ("Balancing weight-balanced trees", 2011).
type tree int

const (
	byExpiry tree = 0
	byName   tree = 1
)

const (
	weightDelta = 3
	weightGamma = 2
)

func (t tree) link(x index, r ref) int { return x.node(r) + nodeLinks + int(t)*12 }

func (t tree) root(x index) ref         { return x.u32(headRoots + int(t)*4) }
func (t tree) setRoot(x index, r ref)   { x.setU32(headRoots+int(t)*4, r) }
func (t tree) left(x index, r ref) ref  { return x.u32(t.link(x, r)) }
func (t tree) right(x index, r ref) ref { return x.u32(t.link(x, r) + 4) }

// child returns the right child of r if right is true, else the left one.
func (t tree) child(x index, r ref, right bool) ref {
	if right {
		return t.right(x, r)
	}
	return t.left(x, r)
}

func (t tree) size(x index, r ref) uint32 {
	if r == none {
		return 0
	}
	return x.u32(t.link(x, r) + 8)
}

// set sets the children of r, and computes its size and its sum from theirs.
func (t tree) set(x index, r, left, right ref) {
	at := t.link(x, r)
	x.setU32(at, left)
	x.setU32(at+4, right)
	x.setU32(at+8, t.size(x, left)+t.size(x, right)+1)
	if t == byExpiry && hasPlaces(x) {
		x.setSum(r, x.sum(left)+x.sum(right)+x.places(r))
	}
}

// compare returns a negative number if member a is before member b, else a positive one. byExpiry
// orders by expiry and then by name, byName by name alone. Names are distinct, so no two members
// are equal.
func (t tree) compare(x index, a, b ref) int {
	if t == byExpiry {
		if ua, ub := x.until(a), x.until(b); ua != ub {
			if ua < ub {
				return -1
			}
			return 1
		}
	}
	return bytes.Compare(x.name(a), x.name(b))
}

func (t tree) insert(x index, r ref) {
	t.setRoot(x, t.inserted(x, t.root(x), r))
}

// inserted adds r to the subtree at top and returns the new top.
func (t tree) inserted(x index, top, r ref) ref {
	if top == none {
		t.set(x, r, none, none)
		return r
	}
	if t.compare(x, r, top) < 0 {
		return t.balanced(x, top, t.inserted(x, t.left(x, top), r), t.right(x, top))
	}
	return t.balanced(x, top, t.left(x, top), t.inserted(x, t.right(x, top), r))
}

func (t tree) remove(x index, r ref) {
	t.setRoot(x, t.removed(x, t.root(x), r))
}

// removed removes r, which must be in the subtree at top, and returns the new top.
func (t tree) removed(x index, top, r ref) ref {
	left, right := t.left(x, top), t.right(x, top)
	switch {
	case top == r:
		return t.joined(x, left, right)
	case t.compare(x, r, top) < 0:
		return t.balanced(x, top, t.removed(x, left, r), right)
	}
	return t.balanced(x, top, left, t.removed(x, right, r))
}

// joined joins two subtrees that were siblings, and returns the new top, which is a member of the
// larger one.
func (t tree) joined(x index, left, right ref) ref {
	switch {
	case left == none:
		return right
	case right == none:
		return left
	case t.size(x, left) > t.size(x, right):
		top := t.edge(x, left, true)
		return t.balanced(x, top, t.removed(x, left, top), right)
	}
	top := t.edge(x, right, false)
	return t.balanced(x, top, left, t.removed(x, right, top))
}

// edge returns the last member of the subtree at top if last is true, else the first.
func (t tree) edge(x index, top ref, last bool) ref {
	for {
		next := t.child(x, top, last)
		if next == none {
			return top
		}
		top = next
	}
}

// balanced makes left and right the children of top, rotates if necessary, and returns the new top.
// The children must have been balanced before one of them changed by one member.
func (t tree) balanced(x index, top, left, right ref) ref {
	l, r := t.size(x, left)+1, t.size(x, right)+1
	switch {
	case r > weightDelta*l:
		return t.rotated(x, top, left, right, true)
	case l > weightDelta*r:
		return t.rotated(x, top, right, left, false)
	}
	t.set(x, top, left, right)
	return top
}

// rotated moves members from the heavy side of top to the light one, and returns the new top.
// heavyRight says that the heavy side is the right one.
func (t tree) rotated(x index, top, light, heavy ref, heavyRight bool) ref {
	inner, outer := t.child(x, heavy, !heavyRight), t.child(x, heavy, heavyRight)
	if t.size(x, inner)+1 < weightGamma*(t.size(x, outer)+1) {
		t.arrange(x, top, light, inner, heavyRight)
		t.arrange(x, heavy, top, outer, heavyRight)
		return heavy
	}
	near, far := t.child(x, inner, !heavyRight), t.child(x, inner, heavyRight)
	t.arrange(x, top, light, near, heavyRight)
	t.arrange(x, heavy, far, outer, heavyRight)
	t.arrange(x, inner, top, heavy, heavyRight)
	return inner
}

// arrange sets the children of r: first on the left and second on the right, or mirrored if
// leftToRight is false.
func (t tree) arrange(x index, r, first, second ref, leftToRight bool) {
	if leftToRight {
		t.set(x, r, first, second)
	} else {
		t.set(x, r, second, first)
	}
}

// redirect changes the link to a node that the caller is about to move. from is the reference of
// the node before the move, and to is its reference afterwards. Before the call no node of the tree
// may have the second reference.
func (t tree) redirect(x index, from, to ref) {
	r := t.root(x)
	if r == from {
		t.setRoot(x, to)
		return
	}
	for {
		right := t.compare(x, from, r) > 0
		next := t.child(x, r, right)
		if next == from {
			at := t.link(x, r)
			if right {
				at += 4
			}
			x.setU32(at, to)
			return
		}
		r = next
	}
}
