package persistence

import "io"

// FS has the operations on a file system that this package needs. The parameters name, from, to and
// dir are paths. Several goroutines may use an FS at the same time.
type FS interface {
	// Create creates a file for writing, or empties an existing file.
	Create(name string) (File, error)
	// Open opens the existing file called name for reading.
	Open(name string) (File, error)
	// Append opens the existing file called name for writing at its end.
	Append(name string) (File, error)
	// Rename renames the file called from, atomically. Its new path is to. A file that already
	// exists there is replaced.
	Rename(from, to string) error
	// Remove removes the file called name.
	Remove(name string) error
	// List returns the names of the entries of the directory dir, without the path of dir.
	List(dir string) ([]string, error)
	// Mkdir creates the directory dir and its parents, and makes their names durable. An existing
	// directory is no error.
	Mkdir(dir string) error
	// SyncDir makes the names of the files in dir durable.
	SyncDir(dir string) error
	// Lock takes the exclusive lock of the file called name, which it creates if necessary, and
	// keeps it until the returned Closer is closed. If another process has the lock, it fails at
	// once with [ErrLocked].
	Lock(name string) (io.Closer, error)
}

// File is an open file of an [FS].
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	// Size returns the length of the file in bytes.
	Size() (int64, error)
	// Sync makes the content of the file durable, but not its name. After an error it is unknown
	// which data is durable. Another Sync may then succeed although data was lost.
	Sync() error
	// Truncate cuts the file to size bytes. It does not make that durable.
	Truncate(size int64) error
}

// OS is an [FS] that uses the file system of the machine. The files that it creates can be accessed
// only by their owner.
type OS struct{}

// fsError is an error that can be a constant.
type fsError string

// Error returns the text of the error.
func (e fsError) Error() string { return string(e) }

// ErrLocked is the error of [FS.Lock] if another process holds the lock.
const ErrLocked = fsError("another process uses this directory")
