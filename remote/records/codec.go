package records

import (
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
)

// These are the parts of the keys in the engine.
const (
	// KeyPrefix is the beginning of all keys of this package, without the prefix of the engine.
	KeyPrefix = "{policies}:"

	headKey = KeyPrefix + "head"
	logKey  = KeyPrefix + "log"
	// confirmKey is the key that is written before a server waits for replicas.
	confirmKey = KeyPrefix + "confirm"
	// buckets is the number of hashes of records.
	buckets = 256
)

// bucketKey returns the key of the hash with the given number, from 0 to 255.
func bucketKey(n int) string { return fmt.Sprintf("%s%02x", KeyPrefix, n) }

// bucketOf returns the number of the hash that has the record with the given key: the lowest byte
// of its FNV-1a hash.
func bucketOf(key []byte) int {
	h := fnv.New32a()
	_, _ = h.Write(key)
	return int(h.Sum32() % buckets)
}

// bucketKeys returns the keys of all hashes of records.
func bucketKeys() []string {
	keys := make([]string, buckets)
	for i := range keys {
		keys[i] = bucketKey(i)
	}
	return keys
}

// appendText appends s to text as a netstring without a comma: its length in decimal, a colon and
// its bytes. The scripts read this form.
func appendText(text []byte, s []byte) []byte {
	text = strconv.AppendInt(text, int64(len(s)), 10)
	text = append(text, ':')
	return append(text, s...)
}

var errText = errors.New("a text is its length, a colon and its bytes")

// takeText returns the first string that appendText has written, and the rest of text.
func takeText(text string) (s, rest string, err error) {
	length, rest, found := strings.Cut(text, ":")
	n, err := strconv.ParseUint(length, 10, 31)
	if !found || err != nil || n > uint64(len(rest)) || strconv.FormatUint(n, 10) != length {
		return "", "", errText
	}
	return rest[:n], rest[n:], nil
}

// change is an entry of the log.
type change struct {
	id, previous uint64 // the id of this change and of the change before it; 0 for none
	millis       int64  // the civil time of the change in Unix milliseconds
	// whole says that the change is too long for the log, so that all records must be read again.
	whole bool
	// pairs has keys and values alternately. An empty value deletes the record.
	pairs []string
}

// head returns the beginning of the entry of c, up to the pairs. The scripts read the two ids at
// its beginning.
func (c *change) head() string {
	mark := "+"
	if c.whole {
		mark = "!"
	}
	return fmt.Sprintf("%016x%016x%d%s", c.id, c.previous, c.millis, mark)
}

// all returns the pairs of c. The bytes of a pair are valid until the iterator yields the next
// pair.
func (c *change) all() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var k, v []byte
		for i := 0; i < len(c.pairs); i += 2 {
			k, v = append(k[:0], c.pairs[i]...), append(v[:0], c.pairs[i+1]...)
			if !yield(k, v) {
				return
			}
		}
	}
}

var errChange = errors.New("a change is two ids, a time, a mark and pairs")

// parseChange returns the change whose entry in the log is text.
func parseChange(text string) (c change, err error) {
	const ids = 2 * idLength
	if len(text) < ids {
		return change{}, errChange
	}
	id, err := parseID(text[:idLength])
	previous, err2 := parseID(text[idLength:ids])
	end := strings.IndexAny(text[ids:], "+!")
	if err != nil || err2 != nil || id == 0 || end < 0 {
		return change{}, errChange
	}
	c.id, c.previous, c.whole = id, previous, text[ids+end] == '!'
	if c.millis, err = strconv.ParseInt(text[ids:ids+end], 10, 64); err != nil {
		return change{}, errChange
	}
	for rest := text[ids+end+1:]; rest != ""; {
		var s string
		if s, rest, err = takeText(rest); err != nil {
			return change{}, fmt.Errorf("%w: %w", errChange, err)
		}
		c.pairs = append(c.pairs, s)
	}
	if len(c.pairs)%2 != 0 || c.whole && len(c.pairs) > 0 {
		return change{}, errChange
	}
	return c, nil
}
