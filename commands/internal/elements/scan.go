package elements

import (
	"bytes"
	"iter"
	"slices"
	"strconv"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

// ParseCursor parses b as a cursor, as Redis does with strtoul of C: an empty text is 0, a sign is
// allowed, and a NUL ends the number. ok is false if the text is not a decimal number of up to 64
// bits.
func ParseCursor(b []byte) (cursor uint64, ok bool) {
	b, _, _ = bytes.Cut(b, []byte{0})
	if len(b) == 0 {
		return 0, true
	}
	minus := b[0] == '-'
	if minus || b[0] == '+' {
		b = b[1:]
	}
	cursor, err := strconv.ParseUint(string(b), 10, 64)
	if minus {
		cursor = -cursor
	}
	return cursor, err == nil
}

// Elements has the elements of a collection for a scan: their names and, if the collection is a
// hash or a sorted set, their values or scores.
type Elements struct {
	N      int
	Copied int // the number of bytes that a reply with all elements copies
	All    iter.Seq2[[]byte, []byte]
	Values bool
	Scores bool // the values are scores, as text that is valid only until the next element
	Of     pinner
}

// append writes one element, with its value if the elements have values.
func (e *Elements) append(w *resp.Writer, name, value []byte) {
	w.Element(name)
	switch {
	case e.Scores:
		w.Bulk(value)
	case e.Values:
		w.Element(value)
	}
}

// readElements calls f with the elements of the collection at key in the database db. If the key
// does not exist, f is not called and found is false.
type readElements[S any] func(st S, db int, key []byte, f func(e Elements)) (found bool, err error)

// maxScanSteps is the maximum cost of matching a pattern while a shard is locked, in comparisons of
// a character.
const maxScanSteps = 1 << 20

const errScanLong resp.Error = "ERR the pattern takes too long to match"

// ScanElements is the Run function of HSCAN, SSCAN and ZSCAN; read reads a collection of the type.
// It replies with all elements whatever the cursor is, so that no element is missed or returned
// twice, and the server keeps no state of an iteration. If there are many elements, or the pattern
// takes long to match, it reads in the background. As in Redis the options are checked only if the
// collection exists.
func ScanElements[S any](c command.CallOn[S], read readElements[S]) {
	if _, ok := ParseCursor(c.Args[2]); !ok {
		c.Fail(resp.ErrInvalidCursor)
		return
	}
	var pattern []byte
	var fault resp.Error
	found := resp.Writer{Ledger: c.W.Ledger, Most: c.W.Most}
	n, size, beside := 0, 0, false
	exists, err := read(c.Store, c.Client.Selected(), c.Args[1], func(e Elements) {
		if pattern, fault = parseElementScan(c.Args[3:]); fault != "" {
			return
		}
		if size, beside = ReadsBeside(c.Call, Whole{N: e.N, Of: e.N, Copied: e.Copied}); !beside {
			if n, beside = e.match(&found, pattern); beside {
				found.Cut(0)
			}
		}
	})
	c.NoteLookup(exists)
	switch {
	case err != nil:
		c.Fail(command.StoreError(err))
	case fault != "":
		c.Fail(fault)
	case beside && c.Client.Exclusive:
		c.Fail(errScanLong)
	case beside:
		BesideRead(c, size, func(st S, db int, key []byte, w *resp.Writer) (bool, error) {
			return scanBeside(st, db, key, read, pattern, w)
		}, func(w *resp.Writer) { scannedHead(w, 0) })
	default:
		mark := len(c.W.Buf)
		scannedHead(c.W, n)
		c.W.Reply(found.Take())
		c.Bound(mark)
	}
}

// scannedHead begins a reply with n strings and with the cursor 0, which ends the iteration.
func scannedHead(w *resp.Writer, n int) {
	w.Array(2)
	w.BulkString("0")
	w.Array(n)
}

// match writes the elements whose names match pattern to found; a nil pattern matches all. n is the
// number of strings that it has written. It stops when the reply gets too long; the caller has to
// check that. If matching takes too long, match gives up and long is true.
func (e *Elements) match(found *resp.Writer, pattern []byte) (n int, long bool) {
	steps := maxScanSteps
	for name, value := range e.All {
		matches := pattern == nil || glob.MatchWithin(pattern, name, &steps)
		switch {
		case steps <= 0:
			return 0, true
		case matches:
			e.append(found, name, value)
			n += e.strings()
		}
		if found.Size(0) > command.Longest(found) {
			break
		}
	}
	return n, false
}

// strings returns the number of strings that one element takes in a reply.
func (e *Elements) strings() int {
	if e.Values {
		return 2
	}
	return 1
}

type element struct{ name, value []byte }

// pin returns all elements, and a function that the caller has to call when it no longer uses them.
// Until then the elements stay valid and unchanged. Scores, and the elements of a collection that
// is too small to be pinned, are copied.
func (e *Elements) pin() (all []element, unpin func()) {
	unpin = e.Of.Pin()
	small := unpin == nil
	if small {
		unpin = func() {}
	}
	all = make([]element, 0, e.N)
	for name, value := range e.All {
		if small {
			name = bytes.Clone(name)
		}
		if small || e.Scores {
			value = bytes.Clone(value)
		}
		all = append(all, element{name, value})
	}
	return all, unpin
}

// scanBeside replies with the elements of key whose names match pattern. It matches and copies them
// after the shard was unlocked. If the key does not exist or there is an error, it writes nothing.
func scanBeside[S any](st S, db int, key []byte, read readElements[S], pattern []byte, w *resp.Writer) (bool, error) {
	var of Elements
	var all []element
	unpin := func() {}
	found, err := read(st, db, key, func(e Elements) {
		of = e
		all, unpin = e.pin()
	})
	defer unpin()
	if !found || err != nil {
		return found, err
	}
	if pattern != nil {
		all = slices.DeleteFunc(all, func(e element) bool { return !glob.Match(pattern, e.name) })
	}
	reply := WholeOf(w, len(all)*of.strings())
	scannedHead(w, len(all)*of.strings())
	for i, e := range all {
		of.append(w, e.name, e.value)
		all[i] = element{} // the element is cleared, because it may have been removed from the store, and its memory can be freed
		if !reply.More() {
			break
		}
	}
	return true, nil
}

// parseElementScan parses args, the options of HSCAN, SSCAN and ZSCAN, and returns a copy of the
// pattern; nil if there is none. It checks the count but ignores it, because it is only a hint.
// fault is "" on success.
func parseElementScan(args [][]byte) (pattern []byte, fault resp.Error) {
	for ; len(args) > 0; args = args[2:] {
		switch {
		case len(args) == 1:
			return nil, resp.ErrSyntax
		case arg.IsWord(args[0], "COUNT"):
			n, ok := arg.Int(args[1])
			switch {
			case !ok:
				return nil, resp.ErrNotInteger
			case n < 1:
				return nil, resp.ErrSyntax
			}
		case arg.IsWord(args[0], "MATCH"):
			if len(args[1]) > glob.MaxPattern {
				return nil, command.ErrPatternTooLong
			}
			pattern = append([]byte{}, args[1]...)
		default:
			return nil, resp.ErrSyntax
		}
	}
	return pattern, ""
}
