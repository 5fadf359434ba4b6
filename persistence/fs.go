package persistence

import "io"

// FS is what this package needs of a file system. Names are paths. Implementations
// may be used by several goroutines.
type FS interface {
	// Create makes a file for writing; one that exists is emptied.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// Append opens an existing file for writing at its end.
	Append(name string) (File, error)
	// Rename gives a file another name, atomically, in place of what has that name.
	Rename(from, to string) error
	Remove(name string) error
	// List returns the names, without the directory, of what is in dir.
	List(dir string) ([]string, error)
	// Mkdir makes a directory, with its parents, durably; one that exists is fine.
	Mkdir(dir string) error
	// SyncDir makes the names in dir durable.
	SyncDir(dir string) error
	// Lock takes the only lock on a file, made if need be, until Close. It fails at
	// once with [ErrLocked] when another process has it.
	Lock(name string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	// Size is its length in bytes.
	Size() (int64, error)
	// Sync makes its content durable, not its name. After an error nothing is known
	// about what is durable, and asking again may be answered wrongly.
	Sync() error
	// Truncate cuts it to size bytes.
	Truncate(size int64) error
}

// OS is the file system of the machine. Files are for their owner alone.
type OS struct{}

type fsError string

func (e fsError) Error() string { return string(e) }

// ErrLocked is answered by [FS.Lock] when another process holds the lock.
const ErrLocked = fsError("another process uses this directory")
