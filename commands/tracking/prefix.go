package tracking

import (
	"strings"
	"sync"
	"sync/atomic"
)

// prefixTree is a radix tree of the prefixes of all clients in BCAST mode. All prefixes of a key
// are on one path from the root.
type prefixTree struct {
	count atomic.Int64 // number of prefixes with at least one client
	mu    sync.RWMutex
	root  prefixNode // the node of the empty prefix; guarded by mu
}

// prefixNode is a node of the tree. Its prefix is the concatenation of the labels on the path from
// the root to the node.
type prefixNode struct {
	label string
	group *prefixGroup // the clients with this prefix; nil if there are none
	next  map[byte]*prefixNode
}

// prefixGroup has the clients with the same prefix, and the changed keys about which these clients
// have not been notified yet.
type prefixGroup struct {
	prefix string

	mu      sync.Mutex
	members map[int64]struct{} // IDs of the clients; guarded by mu
	// pending has the changed keys, each with the ID of the client that changed it; 0 if several
	// clients did, or none. Guarded by mu.
	pending map[string]int64
	mark    uint64 // the mark with which the latest key was added: see observer.mark; guarded by mu

	queued bool // whether the group is in invalidator.groups; guarded by invalidator.mu
}

// pendingCost is the approximate memory, in bytes, of a pending key, without the bytes of the key.
const pendingCost = 64

// join adds the client with the ID id to the group of prefix, and creates the group if necessary.
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

// leave removes the client with the ID id from the group of prefix, and removes the group if it is
// then empty.
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

// changed adds key, which the client writer has changed, to the pending keys of every group whose
// prefix is a prefix of key. It appends these groups to dst and returns the result, except for
// groups whose mark is already mark: they are in dst. memory is the number of bytes that the new
// pending keys take.
func (t *prefixTree) changed(dst []*prefixGroup, key []byte, writer int64, mark uint64) (noted []*prefixGroup, memory int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var name string // the key as a string, which all groups share
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

// note adds key, which the client writer has changed, to the pending keys, and sets the mark of the
// group. If key is pending with another writer, its writer becomes 0. fresh is true if the group
// had another mark. *name caches key as a string; it is "" until the first group needs it. memory
// is the number of bytes that a new pending key takes; 0 if key was pending.
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

// take removes the pending keys from the group. It returns them, and the IDs of the clients in the
// group.
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

// open returns the node of prefix below n. If the node does not exist, open creates it, and splits
// a node if necessary.
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

// find returns the group of exactly prefix below n; nil if there is none.
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

// drop removes the group of prefix below n, which must exist. It also removes or merges the nodes
// that only this group needed.
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
