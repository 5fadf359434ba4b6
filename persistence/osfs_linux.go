package persistence

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData does not sync metadata such as times, which on most file systems saves a write to the
// journal.
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
