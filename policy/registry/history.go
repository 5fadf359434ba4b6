package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Change is one change of the policies: whose doing it was, when, and what.
type Change struct {
	ID int64 `json:"id"`
	// At is the civil time in Unix milliseconds.
	At int64 `json:"at"`
	// User and Address say whose doing it was. The policy file has its path as address.
	User    string `json:"user"`
	Address string `json:"address"`
	// What is the command.
	What string `json:"what"`
	// Policy and Pattern say what it was about. Several entries of a policy that one command
	// changes are one change, without pattern.
	Policy  string `json:"policy"`
	Pattern string `json:"pattern,omitempty"`
	// Before and After are what there was and what there is, as text; empty for nothing.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// MaxChanges is how many changes are kept.
const MaxChanges = 10_000

// maxText is how many bytes of Before and After are kept.
const maxText = 4096

var changePrefix = []byte("change/")

// changeKey is the key of the record of a change.
func changeKey(id int64) []byte { return fmt.Appendf(nil, "%s%020d", changePrefix, id) }

// history is the latest changes.
type history struct {
	changes map[int64]Change
	next    int64 // the ID of the next change
}

func (h *history) reset() { h.changes, h.next = make(map[int64]Change), 1 }

// add takes a change, and drops the one that it replaces.
func (h *history) add(c Change) {
	h.changes[c.ID] = c
	h.next = max(h.next, c.ID+1)
	delete(h.changes, c.ID-MaxChanges)
}

var errChange = errors.New("a change of policies that is none")

// load takes the record of a change, or that it is gone.
func (h *history) load(is record) error {
	id, err := strconv.ParseInt(string(is.key[len(changePrefix):]), 10, 64)
	if err != nil || id < 1 || !bytes.Equal(changeKey(id), is.key) {
		return fmt.Errorf("%w: key %q", errChange, is.key)
	}
	if is.gone || len(is.value) == 0 {
		delete(h.changes, id)
		return nil
	}
	var c Change
	d := json.NewDecoder(bytes.NewReader(is.value))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil || c.ID != id {
		return fmt.Errorf("%w: record %q", errChange, is.key)
	}
	h.add(c)
	return nil
}

// record returns the key and the value of the record of a change.
func (c *Change) record() (key, value []byte) {
	value, _ = json.Marshal(c) // strings and numbers always can be
	return changeKey(c.ID), value
}
