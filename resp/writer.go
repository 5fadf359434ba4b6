package resp

import (
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/cellserver/cellserver/shared"
)

// Writer encodes replies in the protocol that the client has chosen. It only
// appends to Buf: the owner hands Buf to the transport, truncates it and keeps
// the memory, so that a reply allocates nothing once Buf has grown.
//
// Proto is 3 after HELLO 3; every other value, the zero value included, means
// RESP2. It may change between two replies, never inside one. Aggregates are
// written head first: the caller owes exactly the announced number of replies.
type Writer struct {
	// Buf holds the encoded replies.
	Buf []byte
	// Proto is the protocol version, 2 or 3.
	Proto int
	// Most is how many bytes a reply may copy, 0 where it is what all clients may be sent.
	// The writer leaves it to those who know how long a reply will be.
	Most int
	// OnError is told of each error that is written. nil if nobody counts them.
	OnError func(e Error, from Origin)
	// Refs are pieces of the replies that lie elsewhere, and Referred is their length
	// together. There are none while Ledger, which counts what becomes of values that
	// they refer to, is nil.
	Refs     []shared.Ref
	Referred int
	Ledger   shared.Ledger

	// Pieces counts the finished pieces of a long reply, and the strings that it refers
	// to; nil makes no pieces. See Spill.
	Pieces shared.Ledger
	// Room is the capacity of Buf where that is memory which somebody else uses again.
	// A buffer that has grown beyond it is the writer's own.
	Room int

	// Defers says that the owner calls CopyDeferred.
	Defers bool

	spilled  int // bytes of finished pieces, and of strings to be copied
	deferred *deferred
}

// deferred are strings that have been written and have yet to be copied.
type deferred struct {
	strings []deferredString
	mark    int // where the first may be in Buf
	size    int // what they will add to Size
	counted int64
	done    func()
}

// deferredString is one of them. It is as small as it can be, since a hundred thousand are
// noted while a shard is locked.
type deferredString struct {
	bytes *byte
	size  uint32
	at    uint32 // where it comes in Buf
}

// Origin is where an error comes from, for those who count.
type Origin uint8

const (
	// OfServer is an error in the words of the server.
	OfServer Origin = iota
	// OfScript is one whose words a script has chosen.
	OfScript
	// Repeated was counted where it arose: a script returns what a command answered it.
	Repeated
)

func (w *Writer) resp3() bool { return w.Proto == 3 }

// OK writes the status OK.
func (w *Writer) OK() { w.Buf = redcon.AppendOK(w.Buf) }

// Status writes a simple string. A CR or LF in it becomes a space: the line end
// is all that closes it.
func (w *Writer) Status(s string) { w.Buf = redcon.AppendString(w.Buf, s) }

// Error writes an error reply. Line ends at its end are dropped and those inside
// become spaces, as Redis does, so that text taken from a client cannot forge a
// reply (the class of CVE-2025-67733).
func (w *Writer) Error(e Error) { w.ErrorFrom(e, OfServer) }

// ErrorFrom is Error for one that the server has not made.
func (w *Writer) ErrorFrom(e Error, from Origin) {
	if w.OnError != nil {
		w.OnError(e, from)
	}
	w.Buf = redcon.AppendError(w.Buf, strings.TrimRight(string(e), "\r\n"))
}

// maxInt is room for an integer's line, as putInt wants it.
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

// Map announces pairs keys, each followed by its value. On RESP2 it is the flat
// array of both.
func (w *Writer) Map(pairs int) {
	if w.resp3() {
		w.aggregate('%', pairs)
		return
	}
	w.Array(2 * pairs)
}

// Set announces n distinct replies in no order; on RESP2 it is an array.
func (w *Writer) Set(n int) {
	if w.resp3() {
		w.aggregate('~', n)
		return
	}
	w.Array(n)
}

// Push announces a message of n replies that answers no command. RESP2 has no
// such type: there it is an array, which only a client in subscribe mode
// expects, so nothing else may push to a RESP2 client.
func (w *Writer) Push(n int) {
	if w.resp3() {
		w.aggregate('>', n)
		return
	}
	w.Array(n)
}

// aggregate writes the head of one of the types that redcon does not know.
func (w *Writer) aggregate(kind byte, n int) {
	at := len(w.Buf)
	w.Buf = redcon.AppendArray(w.Buf, n)
	w.Buf[at] = kind
}

// Null writes the absent value, which RESP2 spells as a bulk string.
func (w *Writer) Null() {
	if w.resp3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = redcon.AppendNull(w.Buf)
}

// NullArray writes the absent array, as EXEC does for a failed WATCH. RESP3
// knows one null only.
func (w *Writer) NullArray() {
	if w.resp3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = append(w.Buf, "*-1\r\n"...)
}

// Bool writes a boolean, on RESP2 the integer 1 or 0.
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

// LongDouble is Double for a number in decimal that is more exact than a float64.
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

// maxFiveInts is room for every reply of FiveInts: a four-byte head and five
// lines, each of a colon, twenty characters and a line end, plus one spare byte.
const maxFiveInts = 4 + 5*(1+20+2) + 1

// FiveInts writes the array of five integers with which every limiter command
// answers, the same bytes in both protocols. It is Array and five times Int,
// with one check for room and short numbers spelled without a loop.
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
