package persistence

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow is 0 because Windows has no such flag.
const noFollow = 0

// lockFile takes an exclusive lock of f, which the system releases when the process ends. It
// returns ErrLocked if another process has the lock.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// SyncDir implements [FS]. It does nothing, because Windows offers no flush of a directory. How
// durable a new name is depends on the file system.
func (OS) SyncDir(string) error { return nil }
