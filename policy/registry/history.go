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
	ID int64 `json:"-"` // number of the change; it is in the key of its record
	// At is the civil time in Unix milliseconds.
	At int64 `json:"at"`
	// User and Address are the name and the address of the author. For the policy file, Address is
	// its path.
	User    string `json:"user"`
	Address string `json:"address"`
	// What is the name of the command that made the change, or policy-file.
	What string `json:"what"`
	// Policy and Pattern name the changed entry. If one command changes several entries of a
	// policy, this is one change, and Pattern is "" if their patterns differ.
	Policy  string `json:"policy"`
	Pattern string `json:"pattern,omitempty"`
	// Before and After are the texts of the changed entries before and after the change, one on
	// each line; "" if there was no entry.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// MaxChanges is the number of changes that are kept.
const MaxChanges = 10_000

// maxText is the maximum length of Before and After, in bytes, without the "..." of a cut text.
const maxText = 4096

var changePrefix = []byte("change/")

// MaxChange is the approximate maximum size of a change, in its record or in a reply, in bytes.
const MaxChange = 2*maxText + 4096

// changeKey returns the key of the record of the change with the given id.
func changeKey(id int64) []byte { return fmt.Appendf(nil, "%s%020d", changePrefix, id) }

// history holds the latest changes, each as the value of its record, because most are never
// decoded.
type history struct {
	changes map[int64][]byte
	next    int64 // the ID of the next change
	bytes   int64 // the approximate memory of changes in bytes
}

// changeBytes is the approximate memory of a change in bytes, in addition to its value.
const changeBytes = 64

func (h *history) reset() { *h = history{changes: make(map[int64][]byte), next: 1} }

// add adds the change with the given id, and removes the change that is too old now. It keeps
// value, which is the value of the change's record.
func (h *history) add(id int64, value []byte) {
	h.drop(id)
	h.drop(id - MaxChanges)
	h.changes[id] = value
	h.bytes += int64(len(value)) + changeBytes
	h.next = max(h.next, id+1)
}

// drop removes the change with the given id, if there is one.
func (h *history) drop(id int64) {
	if value, there := h.changes[id]; there {
		delete(h.changes, id)
		h.bytes -= int64(len(value)) + changeBytes
	}
}

var errChange = errors.New("a change of policies that is none")

// load processes the record of a change: it adds or removes the change. It ignores a change that is
// too old to be kept. It also ignores a key that is not valid, because a fault of the history must
// not prevent a server from starting.
func (h *history) load(is record) {
	id, err := strconv.ParseInt(string(is.key[len(changePrefix):]), 10, 64)
	switch {
	case err != nil || id < 1 || !bytes.Equal(changeKey(id), is.key):
	case is.gone || len(is.value) == 0:
		h.drop(id)
	case id > h.next-1-MaxChanges: // the records of a snapshot come in no order
		h.add(id, is.value)
	}
}

// Latest is a list of changes, the newest first. It has the values of their records and not the
// decoded changes, because the text of 10,000 changes is long.
type Latest []storedChange

// storedChange is the record of a change. It is immutable.
type storedChange struct {
	id    int64
	value []byte
}

// All returns an iterator that decodes one change after the other.
func (l Latest) All() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, is := range l {
			c, err := decodeChange(is.id, is.value)
			if err != nil {
				c = Change{ID: is.id} // impossible, because newest has left out invalid records
			}
			if !yield(c) {
				return
			}
		}
	}
}

// newest returns the changes that match which, the newest first. It leaves out records that
// cannot be read. It decodes only records that contain the selected names.
func (h *history) newest(which *Which) (newest Latest) {
	name, pattern := []byte(which.Policy), []byte(nil)
	if utf8.ValidString(which.Pattern) {
		pattern, _ = json.Marshal(which.Pattern) // a string can always be encoded
		pattern = bytes.Trim(pattern, `"`)       // Trim may also remove quotes of the pattern itself; what is left is still found
	}
	for id := h.next - 1; id > 0 && id >= h.next-MaxChanges && len(newest) < which.Count; id-- {
		value, there := h.changes[id]
		if !there || !bytes.Contains(value, name) || !bytes.Contains(value, pattern) && !hasNetwork(value, which) {
			continue
		}
		if c, err := decodeChange(id, value); err == nil && which.has(&c) {
			newest = append(newest, storedChange{id, value})
		}
	}
	return newest
}

// hasNetwork reports whether value, a record, contains the stored form of the pattern of which.
func hasNetwork(value []byte, which *Which) bool {
	return which.network != "" && bytes.Contains(value, []byte(which.network)) // the text of a network has no characters that JSON escapes
}

// unreadable returns n, the number of changes that cannot be read, and why, the error of the oldest
// of them, or nil.
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

// changeRecord is the form of a change in its record.
type changeRecord struct {
	Change
	// PatternBytes is the pattern if it is not valid UTF-8, since a JSON string contains only UTF-8. Then
	// Pattern is "".
	PatternBytes []byte `json:"pattern_base64,omitempty"`
}

// value returns the value of the record of a change.
func (c *Change) value() []byte {
	is := changeRecord{Change: *c}
	if !utf8.ValidString(c.Pattern) {
		is.Pattern, is.PatternBytes = "", []byte(c.Pattern)
	}
	value, _ := json.Marshal(&is) // strings, bytes and numbers can always be encoded
	return value
}

// decodeChange returns the change with the given id, whose record has value. It ignores fields that
// a later build has added; these fields stay in the record. The error wraps errChange.
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
