// Package policyfile reads the file of the option policy-file.
// It puts the policies of the file in force in the registry, either all of them or none.
//
// A [File] is read at the start, when the configuration is reloaded, and by RL.POLICY RELOAD. A
// replica only checks the file: the policies of the file come into force when the replica becomes a
// primary.
package policyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/optionfile"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
)

// File is a file of policies. Its methods may be called by any goroutine that may block for a disk.
type File struct {
	path     string
	registry *registry.Registry
	bounds   func() policy.Bounds

	mu sync.Mutex
	// content is the latest valid content, or nil if there is none. It is guarded by mu.
	content *content
	// due says that the content has not been put in force yet. It is guarded by mu.
	due bool

	applied atomic.Pointer[string] // see Hash
}

// content is what a file has, and a hash of its text.
type content struct {
	*document.Document
	hash string
}

// Hash returns a hash of the text that was put in force most recently, in hexadecimal digits. It returns "" before the
// first time, and if f is nil. It does not wait.
func (f *File) Hash() string {
	if f == nil {
		return ""
	}
	if hash := f.applied.Load(); hash != nil {
		return *hash
	}
	return ""
}

// New returns the file at path, whose policies go to r, and passes path to
// [registry.Registry.SetFile]. bounds returns the bounds that the server's options define.
func New(path string, r *registry.Registry, bounds func() policy.Bounds) *File {
	r.SetFile(path)
	return &File{path: path, registry: r, bounds: bounds}
}

// Check returns the faults of the file at path; nil if there are none, or if path is "". bounds has
// the bounds of the limits.
func Check(path string, bounds policy.Bounds) error {
	if path == "" {
		return nil
	}
	_, err := read(path, bounds)
	return err
}

// Prepare reads the file. The returned function apply stores the content for [File.Settle] and
// calls settle. apply is nil if f is nil or there is an error. The error is a *[ReadError].
func (f *File) Prepare(settle func()) (apply func(), err error) {
	if f == nil {
		return nil, nil
	}
	d, err := read(f.path, f.bounds())
	if err != nil {
		return nil, err
	}
	return func() {
		f.note(d)
		settle()
	}, nil
}

func (f *File) note(d *content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content, f.due = d, true
}

// Due reports whether the latest content waits for [File.Settle]. It is false if f is nil.
func (f *File) Due() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.due
}

// Settle puts the latest content in force, and logs the result. If there is no content, it does
// nothing. It may be called again for the same content, because a server that has been a replica
// meanwhile has the policies of its primary.
func (f *File) Settle(st registry.Store, log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.content == nil {
		return
	}
	f.due = false
	by := registry.Author{What: "policy-file", Address: f.path, File: true}
	changed, err := f.registry.Apply(st, by, f.content.Document, f.bounds())
	if err != nil {
		log.Error("the policy file is not in force", "file", f.path, "error", err)
		return
	}
	f.applied.Store(&f.content.hash)
	log.Info("the policy file is in force", "file", f.path, "changed", changed)
}

// Load reads the file and puts it in force. changed is the number of changed entries. The error is
// a *[ReadError], or that of [registry.Registry.Apply].
func (f *File) Load(st registry.Store, by registry.Author) (changed int, err error) {
	d, err := read(f.path, f.bounds())
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content, f.due = d, false
	if changed, err = f.registry.Apply(st, by, d.Document, f.bounds()); err == nil {
		f.applied.Store(&d.hash)
	}
	return changed, err
}

// ReadError is the error of a file that cannot be read or is invalid. Faults has the reason why the
// file cannot be read, or the faults of its content, at most [strict.MaxFaults].
type ReadError struct{ Faults []error }

// Error returns all faults, one per line.
func (e *ReadError) Error() string { return errors.Join(e.Faults...).Error() }

// Unwrap returns the faults.
func (e *ReadError) Unwrap() []error { return e.Faults }

func read(path string, bounds policy.Bounds) (*content, error) {
	text, err := optionfile.Read(path, document.MaxText)
	if err != nil {
		return nil, &ReadError{[]error{fmt.Errorf("reading the policies: %w", err)}}
	}
	d, faults := document.Parse(path, text, bounds)
	if len(faults) == 0 {
		sum := sha256.Sum256(text)
		return &content{d, hex.EncodeToString(sum[:8])}, nil
	}
	unread := &ReadError{}
	for _, fault := range faults {
		unread.Faults = append(unread.Faults, fault)
	}
	return nil, unread
}
