package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
)

// written is the version that a [Writer] writes. It is the version of Redis 5, and all later
// servers read it.
const written = 9

// ErrOrder is the error of a [Writer] for calls in a wrong order, or with arguments that an RDB
// cannot have.
var ErrOrder = errors.New("RDB writer")

// Aux is an auxiliary field at the beginning of an RDB.
type Aux struct{ Name, Value string }

// Writer writes one RDB of version 9, with values in their plain encodings. The caller calls Header
// first; then, for each database, SelectDB, perhaps ResizeDB, and a method for each key; and End
// last. The first error, which may come from the underlying writer, is returned by all later calls.
//
// A Writer buffers up to 32 KiB and one string more. Only one goroutine at a time may use it.
type Writer struct {
	to      io.Writer
	waiting []byte // bytes that are not written yet
	sum     uint64 // CRC64 of all bytes that were written before waiting
	err     error
	// begun is true once Header was called, and ended once End was called.
	begun, ended bool
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Header writes the beginning of the RDB with the given auxiliary fields. Redis knows the names
// "redis-ver", "redis-bits", "ctime", "used-mem", "repl-stream-db", "repl-id" and "repl-offset",
// and ignores others. Header must be called once, before all other methods. A second call is an
// error.
func (w *Writer) Header(fields ...Aux) error {
	if w.begun {
		return w.fail("the header is written once")
	}
	w.begun = true
	w.waiting = fmt.Appendf(w.waiting, "REDIS%04d", written)
	for _, f := range fields {
		w.byte(opAux)
		w.text([]byte(f.Name))
		w.text([]byte(f.Value))
	}
	return w.spill()
}

// SelectDB begins database n: the keys that are written afterwards belong to it. n must be from 0
// to 2^31-1.
func (w *Writer) SelectDB(n int) error {
	if n < 0 || n > math.MaxInt32 {
		return w.fail("database %d", n)
	}
	w.byte(opSelectDB)
	w.length(uint64(n))
	return w.spill()
}

// ResizeDB writes the number of keys of the present database, and the number of those keys that
// have an expiry, so that a server can reserve memory. The numbers need not be exact.
func (w *Writer) ResizeDB(keys, expires uint64) error {
	w.byte(opResize)
	w.length(keys)
	w.length(expires)
	return w.spill()
}

// String writes key with value, a string. expire is the expiry of the key in milliseconds since
// 1970, or 0 if the key has none.
func (w *Writer) String(key, value []byte, expire int64) error {
	if err := w.key(typeString, key, expire); err != nil {
		return err
	}
	w.text(value)
	return w.spill()
}

// List writes key with a list. n must be the number of elements, which must not be 0. expire is as
// in [Writer.String].
func (w *Writer) List(key []byte, expire int64, n int, elements iter.Seq[[]byte]) error {
	return w.texts(typeList, key, expire, n, elements)
}

// Set writes key with a set of n distinct members. The parameters are as in [Writer.List].
func (w *Writer) Set(key []byte, expire int64, n int, members iter.Seq[[]byte]) error {
	return w.texts(typeSet, key, expire, n, members)
}

// Hash writes key with a hash. pairs has its n distinct fields with their values. The other
// parameters are as in [Writer.List].
func (w *Writer) Hash(key []byte, expire int64, n int, pairs iter.Seq2[[]byte, []byte]) error {
	return writePairs(w, typeHash, key, expire, n, pairs, w.text)
}

// SortedSet writes key with a sorted set. members has its n distinct members with their scores,
// none of which may be NaN. A server loads the set fastest if the highest score comes first. The
// other parameters are as in [Writer.List].
func (w *Writer) SortedSet(key []byte, expire int64, n int, members iter.Seq2[[]byte, float64]) error {
	return writePairs(w, typeSortedSet, key, expire, n, members, func(score float64) {
		if math.IsNaN(score) {
			_ = w.fail("a score that is NaN")
		}
		w.waiting = binary.LittleEndian.AppendUint64(w.waiting, math.Float64bits(score))
	})
}

// End writes the end of the RDB and the checksum, and flushes the buffer. No method may be called
// afterwards.
func (w *Writer) End() error {
	w.byte(opEnd)
	if err := w.Flush(); err != nil {
		return err
	}
	w.waiting = binary.LittleEndian.AppendUint64(w.waiting, w.sum)
	err := w.Flush()
	w.ended = true
	return err
}

// Flush writes the buffered bytes to the underlying writer. It returns the first error of the
// Writer.
func (w *Writer) Flush() error {
	w.usable()
	if w.err != nil || len(w.waiting) == 0 {
		return w.err
	}
	w.sum = addSum(w.sum, w.waiting)
	_, w.err = w.to.Write(w.waiting)
	w.waiting = reusable(w.waiting)
	return w.err
}

// usable sets the error of w if Header was not called, or if End was called.
func (w *Writer) usable() {
	if !w.begun || w.ended {
		_ = w.fail("the header comes first, the end last")
	}
}

// fail sets the error, if there is none yet, to one that wraps ErrOrder. It returns the error of w.
func (w *Writer) fail(format string, args ...any) error {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrOrder, fmt.Sprintf(format, args...))
	}
	return w.err
}

// spill writes the buffered bytes if there are at least 32 KiB. It returns the error of w.
func (w *Writer) spill() error {
	if len(w.waiting) >= 32<<10 {
		return w.Flush()
	}
	w.usable()
	return w.err
}

func (w *Writer) byte(b byte) { w.waiting = append(w.waiting, b) }

// length writes the length n in the fewest bytes.
func (w *Writer) length(n uint64) {
	switch {
	case n < 1<<6:
		w.byte(byte(n))
	case n < 1<<14:
		w.waiting = append(w.waiting, byte(n>>8)|0x40, byte(n))
	case n <= math.MaxUint32:
		w.waiting = binary.BigEndian.AppendUint32(append(w.waiting, 0x80), uint32(n))
	default:
		w.waiting = binary.BigEndian.AppendUint64(append(w.waiting, 0x81), n)
	}
}

// text writes s as a string that is not encoded.
func (w *Writer) text(s []byte) {
	w.length(uint64(len(s)))
	w.waiting = append(w.waiting, s...)
}

// key writes what precedes a value: the expiry if it is not 0, the type kind and the name of the
// key. A negative expiry is an error.
func (w *Writer) key(kind byte, key []byte, expire int64) error {
	if expire < 0 {
		return w.fail("a key that expires at %d", expire)
	}
	if expire > 0 {
		w.byte(opExpireMS)
		w.waiting = binary.LittleEndian.AppendUint64(w.waiting, uint64(expire))
	}
	w.byte(kind)
	w.text(key)
	return w.spill()
}

// texts writes key with a value that is a sequence of n strings.
func (w *Writer) texts(kind byte, key []byte, expire int64, n int, all iter.Seq[[]byte]) error {
	pairs := func(yield func([]byte, struct{}) bool) {
		for s := range all {
			if !yield(s, struct{}{}) {
				return
			}
		}
	}
	return writePairs(w, kind, key, expire, n, pairs, func(struct{}) {})
}

// writePairs writes key with a value of n elements. For each of pairs it writes the first part as a
// string, and calls second to write the second part. It returns an error if pairs does not have n
// elements, or if n is not positive.
func writePairs[T any](w *Writer, kind byte, key []byte, expire int64, n int, pairs iter.Seq2[[]byte, T], second func(T)) error {
	if n <= 0 {
		return w.fail("a collection of %d elements, which no server loads", n)
	}
	if err := w.key(kind, key, expire); err != nil {
		return err
	}
	w.length(uint64(n))
	written := 0
	for name, value := range pairs {
		if written++; written > n {
			break
		}
		w.text(name)
		second(value)
		if err := w.spill(); err != nil {
			return err
		}
	}
	if written != n {
		return w.fail("a collection of other than the %d elements announced", n)
	}
	return w.err
}
