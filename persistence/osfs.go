package persistence

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Create implements [FS]. It does not follow a symbolic link, where the system can tell.
func (OS) Create(name string) (File, error) {
	return opened(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC|noFollow, 0o600))
}

// Open implements [FS]. It refuses everything but regular files: opening a pipe would wait for its
// other end.
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
		return os.MkdirAll(dir, 0o700) // returns the error if it is not a directory
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
		_ = f.Close() // the error does not matter: nothing was written
		return nil, err
	}
	return f, nil
}

func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// osFile is a file of the machine.
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

// HasFiles reports whether dir has the manifest of a server.
func HasFiles(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil && info.Mode().IsRegular()
}
