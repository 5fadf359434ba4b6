package faultfs

import (
	"errors"
	"io"
)

// file is an open file of an [FS].
type file struct {
	fs   *FS
	name string
	node *inode
}

// Write implements [persistence.File]. It appends to the file, as all writers of this program do.
func (f *file) Write(b []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.step("write", f.name, len(b)); err != nil {
		if !errors.Is(err, ErrShort) {
			return 0, err
		}
		f.node.data = append(f.node.data, b[:len(b)/2]...)
		return len(b) / 2, err
	}
	f.node.data = append(f.node.data, b...)
	return len(b), nil
}

// ReadAt implements persistence.File.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Size implements persistence.File.
func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.node.data)), nil
}

// Sync implements [persistence.File]. As on Linux, a failed Sync marks all data as clean: data that
// it did not write is never written by a later Sync, either.
func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n := f.node
	if err := f.fs.step("sync", f.name, 0); err != nil {
		n.lost = append(n.lost, span{min(len(n.synced), len(n.data)), len(n.data)})
		return err
	}
	n.synced = append([]byte(nil), n.data...)
	for _, l := range n.lost {
		clear(n.synced[min(l.from, len(n.synced)):min(l.to, len(n.synced))])
	}
	return nil
}

// Truncate implements persistence.File.
func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.step("truncate", f.name, 0); err != nil {
		return err
	}
	if size < int64(len(f.node.data)) {
		f.node.data = append([]byte(nil), f.node.data[:size]...)
	}
	return nil
}

// Close implements persistence.File.
func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.fs.step("close", f.name, 0)
}
