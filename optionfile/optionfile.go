// Package optionfile reads the files that options name, such as certificates, users and policies.
//
// An operator may name a device, a FIFO or a file of a file system that hangs. [Read] takes regular
// files only, counts what it reads rather than trusting the size that the file claims, and ends
// within [Timeout]. It may wait for a disk that long, so no event loop may call it, and no caller may
// hold a lock that an event loop needs. What is in a file is not known here.
package optionfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// Timeout is how long an access to a file may take, and timeoutBeside while another one hangs: what
// reads many files of a file system that hangs ends soon, too.
const (
	Timeout       = 5 * time.Second
	timeoutBeside = 500 * time.Millisecond
)

// maxStuck is how many accesses may hang at once. A system call that hangs cannot be interrupted and
// keeps a thread, of which a process may have 10,000; so the next access fails at once.
const maxStuck = 16

// stuck is how many accesses have exceeded their time and have not returned. It is state of the
// package, since threads belong to the process.
var stuck atomic.Int32

var (
	errNotRegular = errors.New("not a regular file")
	errTimeout    = errors.New("the file system does not answer")
	errStuck      = fmt.Errorf("%d earlier accesses to files hang", maxStuck)
)

// Read returns the content of the regular file at path. It refuses a file of more than bound bytes.
func Read(path string, bound int) ([]byte, error) {
	return within("read", path, func() ([]byte, error) { return read(path, bound) })
}

// ReadDir returns the paths of the regular files in the directory at path, sorted.
func ReadDir(path string) ([]string, error) {
	return within("read", path, func() (files []string, err error) {
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			name := filepath.Join(path, e.Name())
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				files = append(files, name)
			}
		}
		return files, err
	})
}

// Glob is [filepath.Glob].
func Glob(pattern string) ([]string, error) {
	return within("match", pattern, func() ([]string, error) { return filepath.Glob(pattern) })
}

// Write runs f, which writes the file at path. If f takes longer than [Timeout], Write returns an
// error and f goes on.
func Write(path string, f func() error) error {
	_, err := within("write", path, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// read looks before it opens, since opening some devices has effects, and looks again at what it has
// opened. O_NONBLOCK is for a FIFO that has taken the place of the file in between.
func read(path string, bound int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(bound)+1))
	if err == nil && len(content) > bound {
		return nil, fmt.Errorf("%s: longer than %d bytes", path, bound)
	}
	return content, err
}

// within runs f on a goroutine of its own and waits for it up to Timeout.
func within[T any](op, path string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if stuck.Load() >= maxStuck {
		return none, &fs.PathError{Op: op, Path: path, Err: errStuck}
	}
	done := make(chan result, 1)
	var returned atomic.Bool // by f, or given up by the caller, whichever is first
	go func() {
		value, err := f()
		if !returned.CompareAndSwap(false, true) {
			stuck.Add(-1)
		}
		done <- result{value, err}
	}()
	timeout := Timeout
	if stuck.Load() > 0 {
		timeout = timeoutBeside
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
	}
	stuck.Add(1)
	if !returned.CompareAndSwap(false, true) {
		stuck.Add(-1)
		r := <-done
		return r.value, r.err
	}
	return none, &fs.PathError{Op: op, Path: path, Err: errTimeout}
}
