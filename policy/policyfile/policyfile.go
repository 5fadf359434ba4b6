// Package policyfile is the file of the option policy-file: it reads the policies of a server, and
// has the registry put them in force, whole or not at all.
//
// A [File] is read at the start, when the configuration is reloaded, and by RL.POLICY RELOAD. A
// replica only checks it: what it defines comes into force when the replica becomes a primary.
package policyfile

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cellserver/cellserver/optionfile"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
)

// File is a file of policies. Any goroutine that may wait for a disk may use it.
type File struct {
	path     string
	registry *registry.Registry
	bounds   func() policy.Bounds

	mu sync.Mutex
	// content is what was read last without a fault, nil for nothing. guarded by mu.
	content *document.Document
	// due says that nobody has put that in force so far. guarded by mu.
	due bool
}

// New returns the file at path, whose policies go to r. bounds are the options of the server.
func New(path string, r *registry.Registry, bounds func() policy.Bounds) *File {
	r.SetFile(path)
	return &File{path: path, registry: r, bounds: bounds}
}

// Check returns what is wrong with the file at path; nil if it is right, or path is empty.
func Check(path string, bounds policy.Bounds) error {
	if path == "" {
		return nil
	}
	_, err := read(path, bounds)
	return err
}

// Prepare reads the file. What it returns notes its content for [File.Settle] and calls settle; it is
// nil if f is. The error has every fault, with file and line.
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

// Due reports whether what was read last waits for [File.Settle]. It does not if f is nil.
func (f *File) Due() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.due
}

// Settle puts in force what was read last, and logs what has come of it. It can be called again: a
// server that was a replica meanwhile has what its primary had.
func (f *File) Settle(st registry.Store, log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.content == nil {
		return
	}
	f.due = false
	by := registry.Author{What: "policy-file", Address: f.path, File: true}
	changed, err := f.registry.Apply(st, by, f.content, f.bounds())
	if err != nil {
		log.Error("the policy file is not in force", "file", f.path, "error", err)
		return
	}
	log.Info("the policy file is in force", "file", f.path, "changed", changed)
}

// Load reads the file and puts it in force.
func (f *File) Load(st registry.Store, by registry.Author) (changed int, err error) {
	d, err := read(f.path, f.bounds())
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content, f.due = d, false
	return f.registry.Apply(st, by, d, f.bounds())
}

// ReadError is the error of a file that cannot be read, or is not right: every fault, with file and
// line.
type ReadError struct{ Faults []error }

func (e *ReadError) Error() string { return errors.Join(e.Faults...).Error() }

// Unwrap has the faults reported one by one.
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
