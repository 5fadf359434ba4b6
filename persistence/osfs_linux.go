package persistence

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the content of f durable. It does not sync metadata such as times, which on most
// file systems saves a write to the file system's journal.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
