// Package policyfile reads the file of the option policy-file.
// It puts the policies of the file in force in the registry, either all of them or none.
//
// A [File] is read at the start, when the configuration is reloaded, and by RL.POLICY RELOAD. A
// replica only checks the file: the policies of the file come into force when the replica becomes a
// primary. On a server with the option store the policies of the file are not written to the store,
// but hide records of the store with the same name (see [NewOverlay]).
package policyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
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
	// now returns the present instant of the store whose records the policies hide; nil if the
	// policies are records themselves.
	now func() limit.Instant

	mu sync.Mutex
	// content is the latest valid content, or nil if there is none. It is guarded by mu.
	content *document.Document
	// due says that the content has not been put in force yet. It is guarded by mu.
	due bool

	applied atomic.Pointer[string] // the hash of the content in force; nil before the first: see Hash
}

// New returns the file at path, whose policies go to r, and passes path to
// [registry.Registry.SetFile]. bounds returns the bounds that the server's options define.
func New(path string, r *registry.Registry, bounds func() policy.Bounds) *File {
	r.SetFile(path)
	return &File{path: path, registry: r, bounds: bounds}
}

// NewOverlay is [New] for a server with the option store: the policies of the file go to
// [registry.Registry.Overlay]. now returns the present instant of the store. Such a file needs no
// [registry.Store], and does not wait for the store.
func NewOverlay(path string, r *registry.Registry, bounds func() policy.Bounds, now func() limit.Instant) *File {
	f := New(path, r, bounds)
	f.now = now
	return f
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

func (f *File) note(d *document.Document) {
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
	changed, err := f.apply(st, registry.Author{What: "policy-file", Address: f.path, File: true})
	if err != nil {
		log.Error("the policy file is not in force", "file", f.path, "error", err)
		return
	}
	log.Info("the policy file is in force", "file", f.path, "changed", changed)
}

// Load reads the file and puts it in force. changed is the number of changed entries. The error is
// a *[ReadError], or that of [registry.Registry.Apply] or [registry.Registry.Overlay].
func (f *File) Load(st registry.Store, by registry.Author) (changed int, err error) {
	d, err := read(f.path, f.bounds())
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content, f.due = d, false
	return f.apply(st, by)
}

// apply puts the content in force. The caller holds mu.
func (f *File) apply(st registry.Store, by registry.Author) (changed int, err error) {
	if f.now != nil {
		changed, err = f.registry.Overlay(f.content, f.now(), f.bounds())
	} else {
		changed, err = f.registry.Apply(st, by, f.content, f.bounds())
	}
	if err == nil {
		f.applied.Store(hashOf(f.content))
	}
	return changed, err
}

// hashBytes is the number of bytes of a hash in its text.
const hashBytes = 8

// hashOf returns the hash of d: see [File.Hash].
func hashOf(d *document.Document) *string {
	sum := sha256.Sum256(d.Append(nil))
	text := hex.EncodeToString(sum[:hashBytes])
	return &text
}

// Hash returns a hash of the content in force, 16 hexadecimal digits, so that servers can compare
// their files. Contents that differ only in their order and form have the same hash. It is "" if no
// content is in force or f is nil. It does not wait.
func (f *File) Hash() string {
	if f == nil {
		return ""
	}
	if hash := f.applied.Load(); hash != nil {
		return *hash
	}
	return ""
}

// ReadError is the error of a file that cannot be read or is invalid. Faults has the reason why the
// file cannot be read, or the faults of its content, at most [strict.MaxFaults].
type ReadError struct{ Faults []error }

// Error returns all faults, one per line.
func (e *ReadError) Error() string { return errors.Join(e.Faults...).Error() }

// Unwrap returns the faults.
func (e *ReadError) Unwrap() []error { return e.Faults }

func read(path string, bounds policy.Bounds) (*document.Document, error) {
	text, err := optionfile.Read(path, document.MaxText)
	if err != nil {
		return nil, &ReadError{[]error{fmt.Errorf("reading the policies: %w", err)}}
	}
	d, faults := document.Parse(path, text, bounds)
	if len(faults) == 0 {
		return d, nil
	}
	unread := &ReadError{}
	for _, fault := range faults {
		unread.Faults = append(unread.Faults, fault)
	}
	return nil, unread
}
