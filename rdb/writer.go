package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
)

// written is the version that a [Writer] writes: that of Redis 5, which all later versions read.
const written = 9

// ErrOrder says that the calls of a [Writer] were in an order that does not make an RDB.
var ErrOrder = errors.New("RDB writer")

// Aux is a field at the beginning of an RDB.
type Aux struct{ Name, Value string }

// Writer writes one RDB of version 9, with values in their plain encodings. The calls are Header,
// then for each database SelectDB, optionally ResizeDB, and the keys, then End. The first error,
// including that of the underlying writer, is returned by all later calls.
//
// It holds 32 KiB and the last string. Only one goroutine at a time may use it.
type Writer struct {
	to      io.Writer
	waiting []byte
	sum     uint64
	err     error
	// begun and ended say that Header and End were called.
	begun, ended bool
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Header writes the beginning. Redis knows the names "redis-ver", "redis-bits", "ctime",
// "used-mem", "repl-stream-db", "repl-id" and "repl-offset", and ignores others.
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

// SelectDB says that the following keys are in database n.
func (w *Writer) SelectDB(n int) error {
	if n < 0 || n > math.MaxInt32 {
		return w.fail("database %d", n)
	}
	w.byte(opSelectDB)
	w.length(uint64(n))
	return w.spill()
}

// ResizeDB writes the number of keys of the database, and of those that expire, so that a server
// reserves memory for them. The numbers need not be exact.
func (w *Writer) ResizeDB(keys, expires uint64) error {
	w.byte(opResize)
	w.length(keys)
	w.length(expires)
	return w.spill()
}

// String writes a string. Here and below, expire is in milliseconds since 1970, 0 for none.
func (w *Writer) String(key, value []byte, expire int64) error {
	if err := w.key(typeString, key, expire); err != nil {
		return err
	}
	w.text(value)
	return w.spill()
}

// List writes a list of n elements. Here and below, n must be positive and the length of the
// sequence.
func (w *Writer) List(key []byte, expire int64, n int, elements iter.Seq[[]byte]) error {
	return w.texts(typeList, key, expire, n, elements)
}

// Set writes a set of n distinct members.
func (w *Writer) Set(key []byte, expire int64, n int, members iter.Seq[[]byte]) error {
	return w.texts(typeSet, key, expire, n, members)
}

// Hash writes a hash of n distinct fields and their values.
func (w *Writer) Hash(key []byte, expire int64, n int, pairs iter.Seq2[[]byte, []byte]) error {
	return writePairs(w, typeHash, key, expire, n, pairs, w.text)
}

// SortedSet writes a sorted set of n distinct members and their scores, none of which may be NaN.
// It is loaded fastest if the highest score comes first.
func (w *Writer) SortedSet(key []byte, expire int64, n int, members iter.Seq2[[]byte, float64]) error {
	return writePairs(w, typeSortedSet, key, expire, n, members, func(score float64) {
		if math.IsNaN(score) {
			_ = w.fail("a score that is NaN")
		}
		w.waiting = binary.LittleEndian.AppendUint64(w.waiting, math.Float64bits(score))
	})
}

// End writes the end and the checksum.
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

// Flush writes the buffered bytes.
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

func (w *Writer) usable() {
	if !w.begun || w.ended {
		_ = w.fail("the header comes first, the end last")
	}
}

func (w *Writer) fail(format string, args ...any) error {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrOrder, fmt.Sprintf(format, args...))
	}
	return w.err
}

// spill writes the buffered bytes if there are many.
func (w *Writer) spill() error {
	if len(w.waiting) >= 32<<10 {
		return w.Flush()
	}
	w.usable()
	return w.err
}

func (w *Writer) byte(b byte) { w.waiting = append(w.waiting, b) }

// length writes a length in the fewest bytes.
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

func (w *Writer) text(s []byte) {
	w.length(uint64(len(s)))
	w.waiting = append(w.waiting, s...)
}

// key writes the part of an entry before its value.
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

// writePairs writes a value of n pairs of a string and the output of second.
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
