//go:build unix

package persistence

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow is the flag which makes opening a symbolic link fail, so that a link cannot redirect a
// new file.
const noFollow = unix.O_NOFOLLOW

// lockFile takes the exclusive flock of f, which the kernel releases when the process ends for any
// reason. It returns ErrLocked if another process has the lock.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// SyncDir implements [FS].
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
