// Package optionfile reads the files that options name, such as certificates, users and policies.
//
// An operator may name a device, a FIFO or a file of a file system that hangs. [Read] accepts
// regular files only, counts the bytes that it reads instead of trusting the size of the file, and
// ends within [Timeout]. It may wait for a disk that long, so no event loop may call it, and no
// caller may hold a lock that an event loop needs. The package does not interpret the content.
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

// Timeout is the time limit of an access to a file, and timeoutBeside that while another access
// hangs, so that reading many files of a hanging file system ends soon, too.
const (
	Timeout       = 5 * time.Second
	timeoutBeside = 500 * time.Millisecond
)

// maxStuck is the maximum number of hanging accesses. A system call that hangs cannot be
// interrupted and keeps a thread, of which a process may have 10,000; so further accesses fail at
// once.
const maxStuck = 16

// stuck is the number of accesses that have exceeded their time limit and have not returned. It is
// global because threads belong to the process.
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
// error and f continues.
func Write(path string, f func() error) error {
	_, err := within("write", path, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// read checks the file before it opens it, since opening some devices has effects, and again after
// opening. O_NONBLOCK is for a FIFO that has replaced the file in between.
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
	var returned atomic.Bool // set by f, or by the caller that gives up, whichever is first
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
