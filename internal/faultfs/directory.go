package faultfs

import (
	"io"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"

	"github.com/cellserver/cellserver/persistence"
)

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Create implements persistence.FS.
func (m *FS) Create(name string) (persistence.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("create", name, 0); err != nil {
		return nil, err
	}
	node := m.names[name]
	if node == nil {
		node = &inode{}
		m.change(entry{dir: filepath.Dir(name), name: name, to: node})
	}
	node.data, node.lost = nil, nil
	return &file{fs: m, name: name, node: node}, nil
}

// change applies e, a change of a name, which is not durable before SyncDir. The caller holds mu.
func (m *FS) change(e entry) {
	apply(m.names, e)
	m.pending = append(m.pending, e)
}

// Open implements persistence.FS.
func (m *FS) Open(name string) (persistence.File, error) { return m.existing("open", name) }

// Append implements persistence.FS.
func (m *FS) Append(name string) (persistence.File, error) { return m.existing("append", name) }

func (m *FS) existing(op, name string) (persistence.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(op, name, 0); err != nil {
		return nil, err
	}
	node := m.names[name]
	if node == nil {
		return nil, notExist(op, name)
	}
	return &file{fs: m, name: name, node: node}, nil
}

// Rename implements persistence.FS.
func (m *FS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("rename", to, 0); err != nil {
		return err
	}
	node := m.names[from]
	if node == nil {
		return notExist("rename", from)
	}
	m.change(entry{dir: filepath.Dir(to), name: to, to: node, from: from})
	return nil
}

// Remove implements persistence.FS.
func (m *FS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("remove", name, 0); err != nil {
		return err
	}
	if m.names[name] == nil {
		return notExist("remove", name)
	}
	m.change(entry{dir: filepath.Dir(name), name: name})
	return nil
}

// List implements persistence.FS.
func (m *FS) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("list", dir, 0); err != nil {
		return nil, err
	}
	var names []string
	for name := range m.names {
		if rest, ok := strings.CutPrefix(name, dir+string(filepath.Separator)); ok && !strings.ContainsRune(rest, filepath.Separator) {
			names = append(names, rest)
		}
	}
	sort.Strings(names)
	return names, nil
}

// Mkdir implements persistence.FS.
func (m *FS) Mkdir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirs[dir] = true
	return m.step("mkdir", dir, 0)
}

// SyncDir implements persistence.FS.
func (m *FS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("syncdir", dir, 0); err != nil {
		return err
	}
	rest := m.pending[:0]
	for _, e := range m.pending {
		if e.dir == dir {
			apply(m.durable, e)
		} else {
			rest = append(rest, e)
		}
	}
	m.pending = rest
	return nil
}

// Lock implements persistence.FS.
func (m *FS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("lock", name, 0); err != nil {
		return nil, err
	}
	if m.locked[name] {
		return nil, persistence.ErrLocked
	}
	m.locked[name] = true
	return unlocker(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locked, name)
	}), nil
}

type unlocker func()

// Close implements io.Closer.
func (u unlocker) Close() error {
	u()
	return nil
}

// Content returns a copy of the present content of the file called name, or nil if there is no such
// file.
func (m *FS) Content(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if node := m.names[name]; node != nil {
		return append([]byte(nil), node.data...)
	}
	return nil
}

// SetContent sets the content of the file called name to b, durably. It creates the file if
// necessary.
func (m *FS) SetContent(name string, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node := &inode{data: append([]byte(nil), b...), synced: append([]byte(nil), b...)}
	m.names[name], m.durable[name] = node, node
}

// Names returns the names of all files, sorted.
func (m *FS) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.names {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
