package resp

import (
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/cellserver/cellserver/shared"
)

// Writer encodes replies in the protocol version that the client has chosen. It only appends to
// Buf: the owner passes Buf to the transport, truncates it and keeps the memory, so that a reply
// allocates nothing once Buf has grown.
//
// Proto is 3 after HELLO 3; every other value, including the zero value, means RESP2. It may change
// between two replies, but not inside one. Aggregates are written head first: the caller then has
// to write exactly the announced number of replies.
type Writer struct {
	// Buf holds the encoded replies.
	Buf []byte
	// Proto is the protocol version, 2 or 3.
	Proto int
	// Most is the maximum number of bytes that a reply may copy; 0 means the maximum for all
	// clients. The writer does not check it: the code that knows the length of a reply does.
	Most int
	// OnError is called for each error that is written; it may be nil.
	OnError func(e Error, from Origin)
	// Refs are pieces of the replies outside of Buf, and Referred is the sum of their lengths.
	// There are none while Ledger is nil. Ledger counts values that are removed while pieces refer
	// to them.
	Refs     []shared.Ref
	Referred int
	Ledger   shared.Ledger

	// Pieces counts the finished pieces of a long reply and the strings to which it refers. If it
	// is nil, no pieces are made. See Spill.
	Pieces shared.Ledger
	// Room is the capacity of Buf if its memory is reused by another owner. A larger buffer belongs
	// to the writer.
	Room int

	// Defers says that the owner calls CopyDeferred.
	Defers bool

	spilled  int // bytes of finished pieces, and of strings to be copied
	deferred *deferred
}

// deferred has the strings that have been written but not copied yet.
type deferred struct {
	strings []deferredString
	mark    int // position of the first in Buf
	size    int // what they add to Size
	counted int64
	done    func()
}

// deferredString is a noted string. It is as small as possible, since a hundred thousand may be
// noted while a shard is locked.
type deferredString struct {
	bytes *byte
	size  uint32
	at    uint32 // position in Buf
}

// Origin is the source of an error, for statistics.
type Origin uint8

const (
	// OfServer is an error with a text of the server.
	OfServer Origin = iota
	// OfScript is an error with a text of a script.
	OfScript
	// Repeated was counted before: a script returns the error of a command.
	Repeated
)

func (w *Writer) resp3() bool { return w.Proto == 3 }

// OK writes the status OK.
func (w *Writer) OK() { w.Buf = redcon.AppendOK(w.Buf) }

// Status writes a simple string. A CR or LF in it becomes a space, since a line end terminates it.
func (w *Writer) Status(s string) { w.Buf = redcon.AppendString(w.Buf, s) }

// Error writes an error reply. Line ends at its end are dropped and others become spaces, as in
// Redis, so that text from a client cannot forge a reply (the class of CVE-2025-67733).
func (w *Writer) Error(e Error) { w.ErrorFrom(e, OfServer) }

// ErrorFrom is Error for an error that does not come from the server.
func (w *Writer) ErrorFrom(e Error, from Origin) {
	if w.OnError != nil {
		w.OnError(e, from)
	}
	w.Buf = redcon.AppendError(w.Buf, strings.TrimRight(string(e), "\r\n"))
}

// maxInt is the room that putInt needs for the line of an integer.
const maxInt = 24

// Int writes an integer.
func (w *Writer) Int(n int64) {
	buf := slices.Grow(w.Buf, maxInt)
	w.Buf = buf[:len(buf)+putInt(buf[len(buf):len(buf)+maxInt], n)]
}

// Bulk writes a bulk string; nil is the empty string, not null.
func (w *Writer) Bulk(b []byte) { w.Buf = redcon.AppendBulk(w.Buf, b) }

func (w *Writer) shortString(s string) { w.Buf = redcon.AppendBulkString(w.Buf, s) }

// Array announces n replies.
func (w *Writer) Array(n int) { w.Buf = redcon.AppendArray(w.Buf, n) }

// Map announces pairs of a key and a value. In RESP2 it is an array of both.
func (w *Writer) Map(pairs int) {
	if w.resp3() {
		w.aggregate('%', pairs)
		return
	}
	w.Array(2 * pairs)
}

// Set announces n distinct replies without an order; in RESP2 it is an array.
func (w *Writer) Set(n int) {
	if w.resp3() {
		w.aggregate('~', n)
		return
	}
	w.Array(n)
}

// Push announces a message of n replies that is not the reply to a command. RESP2 has no such type:
// it is an array there, which only a client in subscribe mode expects, so nothing else may be
// pushed to a RESP2 client.
func (w *Writer) Push(n int) {
	if w.resp3() {
		w.aggregate('>', n)
		return
	}
	w.Array(n)
}

// aggregate writes the head of a type that redcon does not know.
func (w *Writer) aggregate(kind byte, n int) {
	at := len(w.Buf)
	w.Buf = redcon.AppendArray(w.Buf, n)
	w.Buf[at] = kind
}

// Null writes null, which is a bulk string in RESP2.
func (w *Writer) Null() {
	if w.resp3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = redcon.AppendNull(w.Buf)
}

// NullArray writes the null array, as EXEC does after a failed WATCH. RESP3 has only one null.
func (w *Writer) NullArray() {
	if w.resp3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = append(w.Buf, "*-1\r\n"...)
}

// Bool writes a boolean, in RESP2 the integer 1 or 0.
func (w *Writer) Bool(b bool) {
	if w.resp3() {
		value := byte('f')
		if b {
			value = 't'
		}
		w.Buf = append(w.Buf, '#', value, '\r', '\n')
		return
	}
	n := int64(0)
	if b {
		n = 1
	}
	w.Int(n)
}

// Double writes a number with a fraction, spelled as Redis 7.2 does: the
// shortest digits that read back as the same number, integers without a point,
// "inf", "-inf" and "nan". On RESP2 it is a bulk string.
func (w *Writer) Double(f float64) {
	var scratch [maxDoubleText]byte
	text := AppendDouble(scratch[:0], f)
	if !w.resp3() {
		w.Bulk(text)
		return
	}
	w.Buf = append(w.Buf, ',')
	w.Buf = append(w.Buf, text...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// LongDouble is Double for a decimal number that is more precise than a float64.
func (w *Writer) LongDouble(text string) {
	if !w.resp3() {
		w.shortString(text)
		return
	}
	w.Buf = append(w.Buf, ',')
	w.Buf = append(w.Buf, text...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Raw appends bytes that are already encoded.
func (w *Writer) Raw(b []byte) { w.Buf = append(w.Buf, b...) }

// maxFiveInts is room for every reply of FiveInts: a head of four bytes and five lines, each of a
// colon, twenty characters and a line end, plus one spare byte.
const maxFiveInts = 4 + 5*(1+20+2) + 1

// FiveInts writes the array of five integers that every limiter command replies, the same bytes in
// both protocol versions. It is equivalent to Array and five times Int, with a single check for
// room and without a loop for short numbers.
func (w *Writer) FiveInts(a, b, c, d, e int64) {
	buf := slices.Grow(w.Buf, maxFiveInts)
	room := buf[len(buf) : len(buf)+maxFiveInts]
	n := copy(room, "*5\r\n")
	n += putInt(room[n:], a)
	n += putInt(room[n:], b)
	n += putInt(room[n:], c)
	n += putInt(room[n:], d)
	n += putInt(room[n:], e)
	w.Buf = buf[:len(buf)+n]
}
