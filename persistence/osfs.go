package persistence

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Create implements [FS]. On Unix it fails if name is a symbolic link. Only the owner may access
// the file.
func (OS) Create(name string) (File, error) {
	return opened(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC|noFollow, 0o600))
}

// Open implements [FS]. It fails if name is not a regular file, because opening a pipe would wait
// for the other end of the pipe.
func (OS) Open(name string) (File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return opened(os.Open(name))
}

// errNotRegular is the error for a file that is not a regular file.
var errNotRegular = errors.New("not a regular file")

// Append implements [FS].
func (OS) Append(name string) (File, error) {
	return opened(os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600))
}

// Rename implements [FS].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements [FS].
func (OS) Remove(name string) error { return os.Remove(name) }

// List implements [FS].
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Mkdir implements [FS].
func (o OS) Mkdir(dir string) error {
	parent := filepath.Dir(dir)
	if _, err := os.Stat(dir); err == nil || parent == dir {
		return os.MkdirAll(dir, 0o700) // fails if dir exists and is not a directory
	}
	if err := o.Mkdir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.SyncDir(parent)
}

// Lock implements [FS].
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close() // an error does not matter, because nothing was written
		return nil, err
	}
	return f, nil
}

// opened returns f as a File, or err.
func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// osFile is a [File] of the machine's file system.
type osFile struct{ *os.File }

// Size implements [File].
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync implements [File].
func (f osFile) Sync() error { return syncData(f.File) }

// HasFiles reports whether the directory dir has the manifest of a server. It uses the file system
// of the machine.
func HasFiles(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil && info.Mode().IsRegular()
}
