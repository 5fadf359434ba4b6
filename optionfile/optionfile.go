// Package optionfile reads and replaces the files that options of the server name, such as aclfile.
//
// An operator may name a device, a FIFO or a file in a file system that hangs. [Read] accepts only
// regular files, counts the bytes that it reads instead of trusting the size of the file, and ends
// within [Timeout]. [Replace] has no time limit of its own; all other functions end within
// [Timeout]. Since they may wait for so long, no event loop may call them, and the caller must not
// hold a lock that an event loop needs. The package does not interpret the content of files.
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

// Timeout is the time limit of an access to a file. timeoutBeside is the time limit if an earlier
// access hangs, so that reading many files of a hanging file system ends soon.
const (
	Timeout       = 5 * time.Second
	timeoutBeside = 500 * time.Millisecond
)

// maxStuck is the number of hanging accesses at which further accesses fail at once. A system call
// that hangs cannot be interrupted and keeps a thread, and a Go process may have only 10,000
// threads.
const maxStuck = 16

// stuck is the number of accesses that have exceeded their time limit and have not returned yet. It
// is global because threads belong to the process.
var stuck atomic.Int32

var (
	errNotRegular = errors.New("not a regular file")
	errTimeout    = errors.New("the file system does not answer")
	errStuck      = fmt.Errorf("%d earlier accesses to files hang", maxStuck)
)

// Read returns the content of the regular file at path. It returns an error if the file has more
// than bound bytes or is not regular, or if the access takes longer than [Timeout].
func Read(path string, bound int) ([]byte, error) {
	return within("read", path, func() ([]byte, error) { return read(path, bound) })
}

// Stat returns the information of the file system about the file at path, and follows links. It returns an error if
// that takes longer than [Timeout].
func Stat(path string) (fs.FileInfo, error) {
	return within("stat", path, func() (fs.FileInfo, error) { return os.Stat(path) })
}

// ReadDir returns the paths of the regular files in the directory at path, sorted by name. It
// leaves out all other files. It returns an error if that takes longer than [Timeout].
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

// Names returns the names of everything in the directory at path, sorted. It returns an error if that takes longer than
// [Timeout].
func Names(path string) ([]string, error) {
	return within("read", path, func() (names []string, err error) {
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	})
}

// Glob returns the paths that match pattern, as [filepath.Glob] does. It returns an error if that
// takes longer than [Timeout].
func Glob(pattern string) ([]string, error) {
	return within("match", pattern, func() ([]string, error) { return filepath.Glob(pattern) })
}

// Write calls f, which writes the file at path, in another goroutine, and returns its error. If f
// takes longer than [Timeout], Write returns an error while f continues.
func Write(path string, f func() error) error {
	_, err := within("write", path, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// read is [Read] without a time limit. It checks that the file is regular before it opens the file,
// since opening some devices has effects, and again afterwards, since the file may have been
// replaced in between. With O_NONBLOCK it does not wait if it opens a FIFO.
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

// within calls f in a goroutine of its own and returns its results. If f takes longer than Timeout,
// or than timeoutBeside if another access hangs when f begins, within returns an error, and f
// continues. It fails at once if maxStuck accesses hang. op and path are for the text of these
// errors.
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
	var returned atomic.Bool // set by the goroutine of f when f returns, or by the caller after the time limit
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
