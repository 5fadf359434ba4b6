package faultfs

import "math/rand/v2"

// sector is the number of bytes that a disk writes either entirely or not at all.
const sector = 512

// Crash returns a copy of the disk as it is after a power failure at this moment. The copy has
// everything that was synced. Of all other changes rng chooses those that it has, for each name and
// each sector separately. Changes of names may take effect in any order, but a rename is atomic.
// Sectors inside a file that were not written are zero. A file that has grown since the last sync
// may have any length from its old to its new one. A file that was truncated has its old or its new
// length.
func (m *FS) Crash(rng *rand.Rand) *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crash(rng)
}

func (m *FS) crash(rng *rand.Rand) *FS {
	out := New()
	names := make(map[string]*inode, len(m.durable))
	for name, node := range m.durable {
		names[name] = node
	}
	for _, e := range m.pending {
		if rng.IntN(2) == 0 {
			apply(names, e)
		}
	}
	copies := make(map[*inode]*inode)
	for name, node := range names {
		if copies[node] == nil {
			left := node.survivor(rng)
			copies[node] = &inode{data: left, synced: append([]byte(nil), left...)}
		}
		out.names[name], out.durable[name] = copies[node], copies[node]
	}
	return out
}

// Kill returns a copy of the disk as it is after the process was killed: it has everything that the
// process has written.
func (m *FS) Kill() *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := New()
	for name, node := range m.names {
		out.names[name] = &inode{data: append([]byte(nil), node.data...), synced: append([]byte(nil), node.data...)}
		out.durable[name] = out.names[name]
	}
	return out
}

// survivor returns the content of a file after a crash, which rng chooses: a length between those
// at the last Sync and now, and for each sector either the present bytes or the bytes of the last
// Sync, with zeros beyond their end.
func (n *inode) survivor(rng *rand.Rand) []byte {
	length := len(n.synced)
	if d := len(n.data) - len(n.synced); d > 0 {
		length += rng.IntN(d + 1)
	} else if d < 0 && rng.IntN(2) == 0 {
		length = len(n.data)
	}
	out := make([]byte, length)
	copy(out, n.synced)
	for at := 0; at < length; at += sector {
		end := min(at+sector, length)
		if rng.IntN(2) == 0 && end <= len(n.data) {
			copy(out[at:end], n.data[at:end])
		}
	}
	return out
}

// step records a call, calls the function of Watch, and returns the error of the function of Inject
// for the call; nil if there is none. The caller holds mu.
func (m *FS) step(op, name string, size int) error {
	c := Call{op, name, size}
	m.calls = append(m.calls, c)
	if m.watch != nil {
		m.watch(len(m.calls), m.crash)
	}
	if m.inject == nil {
		return nil
	}
	return m.inject(len(m.calls), c)
}
