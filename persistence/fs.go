package persistence

import "io"

// FS has the operations on a file system that this package needs. Names are paths. Any number of
// goroutines may use an FS at the same time.
type FS interface {
	// Create makes a file for writing; an existing file is emptied.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// Append opens an existing file for writing at its end.
	Append(name string) (File, error)
	// Rename renames a file atomically, and replaces a file of the new name.
	Rename(from, to string) error
	Remove(name string) error
	// List returns the names of the entries of dir, without the directory.
	List(dir string) ([]string, error)
	// Mkdir makes a directory with its parents, durably. An existing directory is no error.
	Mkdir(dir string) error
	// SyncDir makes the names in dir durable.
	SyncDir(dir string) error
	// Lock takes the exclusive lock on a file, which it creates if necessary, until Close. If
	// another process has the lock it fails at once with [ErrLocked].
	Lock(name string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	// Size returns the length of the file in bytes.
	Size() (int64, error)
	// Sync makes the content of the file durable, but not its name. After an error it is unknown
	// which data is durable, and another Sync may succeed wrongly.
	Sync() error
	// Truncate cuts the file to size bytes.
	Truncate(size int64) error
}

// OS is the file system of the machine. Only their owner may access the files it creates.
type OS struct{}

type fsError string

func (e fsError) Error() string { return string(e) }

// ErrLocked is the error of [FS.Lock] if another process holds the lock.
const ErrLocked = fsError("another process uses this directory")
