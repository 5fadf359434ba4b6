package tracking

import (
	"strings"
	"sync"
	"sync/atomic"
)

// prefixTree is what clients in BCAST mode listen to: a radix tree of prefixes, in
// which all those of a key lie on one path.
type prefixTree struct {
	count atomic.Int64 // prefixes that somebody listens to
	mu    sync.RWMutex
	root  prefixNode // guarded by mu
}

// prefixNode is a node of the tree. The labels from the root to it make a prefix.
type prefixNode struct {
	label string
	group *prefixGroup // nil where nobody listens
	next  map[byte]*prefixNode
}

// prefixGroup is those who listen to one prefix, and what they have to be told.
type prefixGroup struct {
	prefix string

	mu      sync.Mutex
	members map[int64]struct{} // guarded by mu: ids of clients
	// pending are the keys that have changed, each with the client that changed it, 0 if
	// several did. Guarded by mu.
	pending map[string]int64
	mark    uint64 // guarded by mu: of the latest who changed one

	queued bool // guarded by invalidator.mu: is in its list
}

// pendingCost is about what a pending key takes beside its bytes.
const pendingCost = 64

// join makes a client listen to a prefix.
func (t *prefixTree) join(prefix string, id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.root.open(prefix)
	if n.group == nil {
		n.group = &prefixGroup{prefix: strings.Clone(prefix), members: make(map[int64]struct{})}
		t.count.Add(1)
	}
	n.group.mu.Lock()
	n.group.members[id] = struct{}{}
	n.group.mu.Unlock()
}

// leave undoes join.
func (t *prefixTree) leave(prefix string, id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.root.find(prefix)
	if g == nil {
		return
	}
	g.mu.Lock()
	delete(g.members, id)
	empty := len(g.members) == 0
	g.mu.Unlock()
	if empty {
		t.root.drop(prefix)
		t.count.Add(-1)
	}
}

// changed notes a key for all who listen to a prefix of it. It returns the groups that
// have something pending because of it, in the capacity of dst, but for those that the
// same mark has been given just before, and the memory that it took.
func (t *prefixTree) changed(dst []*prefixGroup, key []byte, writer int64, mark uint64) (noted []*prefixGroup, memory int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var name string // the key, made once for all groups
	for n, rest := &t.root, key; ; {
		if n.group != nil {
			fresh, cost := n.group.note(key, &name, writer, mark)
			if fresh {
				dst = append(dst, n.group)
			}
			memory += cost
		}
		if len(rest) == 0 {
			return dst, memory
		}
		child := n.next[rest[0]]
		if child == nil || len(rest) < len(child.label) || string(rest[:len(child.label)]) != child.label {
			return dst, memory
		}
		n, rest = child, rest[len(child.label):]
	}
}

// note adds a key to what is pending, and reports whether the latest mark was another.
// name is the key as a string, "" as long as no group has needed it.
func (g *prefixGroup) note(key []byte, name *string, writer int64, mark uint64) (fresh bool, memory int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fresh, g.mark = g.mark != mark, mark
	if was, there := g.pending[string(key)]; there {
		if was != writer {
			g.pending[string(key)] = 0
		}
		return fresh, 0
	}
	if g.pending == nil {
		g.pending = make(map[string]int64)
	}
	if *name == "" {
		*name = string(key)
	}
	g.pending[*name] = writer
	return fresh, int64(len(key) + pendingCost)
}

// take returns what is pending, and for whom.
func (g *prefixGroup) take() (pending map[string]int64, members []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pending, g.pending = g.pending, nil
	members = make([]int64, 0, len(g.members))
	for id := range g.members {
		members = append(members, id)
	}
	return pending, members
}

// open returns the node of a prefix, made if there is none.
func (n *prefixNode) open(prefix string) *prefixNode {
	for prefix != "" {
		child := n.next[prefix[0]]
		if child == nil {
			child = &prefixNode{label: strings.Clone(prefix)}
			n.add(child)
			return child
		}
		same := 0
		for same < len(prefix) && same < len(child.label) && prefix[same] == child.label[same] {
			same++
		}
		if same < len(child.label) {
			upper := &prefixNode{label: child.label[:same]}
			child.label = child.label[same:]
			upper.add(child)
			n.add(upper)
			child = upper
		}
		n, prefix = child, prefix[same:]
	}
	return n
}

func (n *prefixNode) add(child *prefixNode) {
	if n.next == nil {
		n.next = make(map[byte]*prefixNode)
	}
	n.next[child.label[0]] = child
}

// find returns who listens to exactly this prefix.
func (n *prefixNode) find(prefix string) *prefixGroup {
	for prefix != "" {
		child := n.next[prefix[0]]
		if child == nil || !strings.HasPrefix(prefix, child.label) {
			return nil
		}
		n, prefix = child, prefix[len(child.label):]
	}
	return n.group
}

// drop removes the group of a prefix and the nodes that only it needed.
func (n *prefixNode) drop(prefix string) {
	if prefix == "" {
		n.group = nil
		return
	}
	child := n.next[prefix[0]]
	child.drop(prefix[len(child.label):])
	switch {
	case child.group != nil || len(child.next) > 1:
	case len(child.next) == 0:
		delete(n.next, prefix[0])
	default:
		for _, only := range child.next {
			only.label = child.label + only.label
			n.next[prefix[0]] = only
		}
	}
}
