package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"unicode/utf8"
)

// Change is one change of the policies, with its author, time and content.
type Change struct {
	ID int64 `json:"-"` // which the key of its record has
	// At is the civil time in Unix milliseconds.
	At int64 `json:"at"`
	// User and Address are those of the author. The policy file has its path as address.
	User    string `json:"user"`
	Address string `json:"address"`
	// What is the command.
	What string `json:"what"`
	// Policy and Pattern are those of the changed entry. If one command changes several entries
	// of a policy, they are one change without a pattern.
	Policy  string `json:"policy"`
	Pattern string `json:"pattern,omitempty"`
	// Before and After are the entry before and after the change, as text; empty for none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// MaxChanges is how many changes are kept.
const MaxChanges = 10_000

// maxText is how many bytes of Before and After are kept.
const maxText = 4096

var changePrefix = []byte("change/")

// MaxChange is about how many bytes a change has at most, in its record or in a reply.
const MaxChange = 2*maxText + 4096

// changeKey is the key of the record of a change.
func changeKey(id int64) []byte { return fmt.Appendf(nil, "%s%020d", changePrefix, id) }

// history is the latest changes, each as the value of its record: most are never looked at.
type history struct {
	changes map[int64][]byte
	next    int64 // the ID of the next change
	bytes   int64 // about how much memory changes takes
}

// changeBytes is the approximate memory of a change in addition to its value.
const changeBytes = 64

func (h *history) reset() { *h = history{changes: make(map[int64][]byte), next: 1} }

// add takes a change, and drops the one that it replaces. value is kept.
func (h *history) add(id int64, value []byte) {
	h.drop(id)
	h.drop(id - MaxChanges)
	h.changes[id] = value
	h.bytes += int64(len(value)) + changeBytes
	h.next = max(h.next, id+1)
}

// drop forgets a change, if it is there.
func (h *history) drop(id int64) {
	if value, there := h.changes[id]; there {
		delete(h.changes, id)
		h.bytes -= int64(len(value)) + changeBytes
	}
}

var errChange = errors.New("a change of policies that is none")

// load reads the record of a change, or removes the change. It ignores keys of other records,
// because a fault of the history must not keep a server from starting.
func (h *history) load(is record) {
	id, err := strconv.ParseInt(string(is.key[len(changePrefix):]), 10, 64)
	switch {
	case err != nil || id < 1 || !bytes.Equal(changeKey(id), is.key):
	case is.gone || len(is.value) == 0:
		h.drop(id)
	case id > h.next-1-MaxChanges: // the order of a snapshot is no order
		h.add(id, is.value)
	}
}

// Latest is changes, the newest first, as their records have them: the text of 10,000 changes is long.
type Latest []storedChange

// storedChange is the record of a change, which never changes.
type storedChange struct {
	id    int64
	value []byte
}

// All decodes one change after the other.
func (l Latest) All() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, is := range l {
			c, err := decodeChange(is.id, is.value)
			if err != nil {
				c = Change{ID: is.id} // newest has left those out
			}
			if !yield(c) {
				return
			}
		}
	}
}

// newest returns the changes that are wanted, the newest first. A record that cannot be read is left
// out. Records in which the wanted words are nowhere are not decoded.
func (h *history) newest(which *Which) (newest Latest) {
	name, pattern := []byte(which.Policy), []byte(nil)
	if utf8.ValidString(which.Pattern) {
		pattern, _ = json.Marshal(which.Pattern) // a text always can be
		pattern = bytes.Trim(pattern, `"`)       // without a quote of its own at the end, which is found, too
	}
	for id := h.next - 1; id > 0 && id >= h.next-MaxChanges && len(newest) < which.Count; id-- {
		value, there := h.changes[id]
		if !there || !bytes.Contains(value, name) || !bytes.Contains(value, pattern) {
			continue
		}
		if c, err := decodeChange(id, value); err == nil && which.has(&c) {
			newest = append(newest, storedChange{id, value})
		}
	}
	return newest
}

// unreadable returns how many changes cannot be read, and why the oldest of these cannot.
func (h *history) unreadable() (n int, why error) {
	oldest := int64(math.MaxInt64)
	for id, value := range h.changes {
		if _, err := decodeChange(id, value); err != nil {
			if n++; id < oldest {
				oldest, why = id, fmt.Errorf("record %q: %w", changeKey(id), err)
			}
		}
	}
	return n, why
}

// changeRecord is a change as its record has it.
type changeRecord struct {
	Change
	// PatternBytes is the pattern if that is no UTF-8, which JSON has no other form for.
	PatternBytes []byte `json:"pattern_base64,omitempty"`
}

// value returns the value of the record of a change.
func (c *Change) value() []byte {
	is := changeRecord{Change: *c}
	if !utf8.ValidString(c.Pattern) {
		is.Pattern, is.PatternBytes = "", []byte(c.Pattern)
	}
	value, _ := json.Marshal(&is) // strings, bytes and numbers always can be
	return value
}

// decodeChange returns the change of a record. Fields that this build does not know are passed over,
// and stay in the record: a later build has added them.
func decodeChange(id int64, value []byte) (Change, error) {
	var is changeRecord
	d := json.NewDecoder(bytes.NewReader(value))
	if err := d.Decode(&is); err != nil {
		return Change{}, fmt.Errorf("%w: %w", errChange, err)
	}
	if d.InputOffset() != int64(len(value)) {
		return Change{}, fmt.Errorf("%w: something is behind it", errChange)
	}
	if is.ID = id; is.PatternBytes != nil {
		is.Pattern = string(is.PatternBytes)
	}
	return is.Change, nil
}
