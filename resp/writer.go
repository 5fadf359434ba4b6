package resp

import (
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/cellserver/cellserver/shared"
)

// Writer encodes replies in the protocol version that the client has chosen. It appends them to
// Buf. The owner of the writer passes Buf to the transport, truncates Buf and keeps its memory, so
// that a reply allocates nothing once Buf has grown. Only one goroutine at a time may use a Writer.
// The zero Writer is ready for use.
//
// The head of an aggregate, such as an array, is written first. The caller then has to write
// exactly the announced number of replies.
type Writer struct {
	// Buf has the encoded replies, without the bytes of Refs.
	Buf []byte
	// Proto is the protocol version: 3 after HELLO 3; every other value, 0 included, means RESP2.
	// It may change between two replies, but not inside one.
	Proto int
	// Most is the maximum number of bytes that a reply may copy; 0 means the maximum for all
	// clients. The writer does not check Most; the code that knows the length of a reply does.
	Most int
	// OnError, if not nil, is called for each error that is written, with the source of the error.
	OnError func(e Error, from Origin)
	// Refs has the pieces of the replies that are outside of Buf, and Referred is the sum of their
	// lengths. There are no references to values while Ledger is nil. Ledger counts values that are
	// removed while replies refer to them.
	Refs     []shared.Ref
	Referred int
	Ledger   shared.Ledger

	// Pieces counts the memory of finished pieces of long replies, and of the strings to which
	// replies refer. If it is nil, no pieces are made: see Spill.
	Pieces shared.Ledger
	// Room is the capacity of Buf if the memory of Buf belongs to another owner, which reuses it. A
	// buffer with a larger capacity belongs to the writer.
	Room int

	// Defers is set by an owner that calls CopyDeferred, so that code which writes a reply may call
	// Defer.
	Defers bool

	spilled  int // number of bytes of finished pieces and of noted strings
	deferred *deferred
}

// deferred has the strings that Element has noted and that were not copied yet.
type deferred struct {
	strings []deferredString
	mark    int    // length of Buf at the call of Defer
	size    int    // number of bytes that the strings add to Writer.Size
	counted int64  // number of bytes that Writer.Pieces has counted
	done    func() // function to call after the copies are made: see Defer
}

// deferredString is a noted string. It is as small as possible, since a hundred thousand strings
// may be noted while a shard is locked.
type deferredString struct {
	bytes *byte
	size  uint32
	at    uint32 // offset in Buf at which the string belongs
}

// Origin is the source of an error reply. Statistics distinguish errors by it.
type Origin uint8

const (
	// OfServer means that the server has chosen the text of the error.
	OfServer Origin = iota
	// OfScript means that a script has chosen the text of the error.
	OfScript
	// Repeated means that a script returns the error of a command, which was counted before.
	Repeated
)

func (w *Writer) resp3() bool { return w.Proto == 3 }

// OK writes the simple string "OK".
func (w *Writer) OK() { w.Buf = redcon.AppendOK(w.Buf) }

// Status writes s as a simple string. Each CR or LF in s becomes a space, since a line end
// terminates a simple string.
func (w *Writer) Status(s string) { w.Buf = redcon.AppendString(w.Buf, s) }

// Error writes e as an error reply, and calls OnError with OfServer. As in Redis, each CR or LF in
// e becomes a space, and those at the end are dropped. So text from a client cannot forge a reply
// (the class of CVE-2025-67733).
func (w *Writer) Error(e Error) { w.ErrorFrom(e, OfServer) }

// ErrorFrom does what [Writer.Error] does, and calls OnError with the given source of the error.
func (w *Writer) ErrorFrom(e Error, from Origin) {
	if w.OnError != nil {
		w.OnError(e, from)
	}
	w.Buf = redcon.AppendError(w.Buf, strings.TrimRight(string(e), "\r\n"))
}

// maxInt is the number of bytes of room that putInt needs.
const maxInt = 24

// Int writes the integer n.
func (w *Writer) Int(n int64) {
	buf := slices.Grow(w.Buf, maxInt)
	w.Buf = buf[:len(buf)+putInt(buf[len(buf):len(buf)+maxInt], n)]
}

// Bulk writes b as a bulk string. A nil b is written as the empty string, not as null.
func (w *Writer) Bulk(b []byte) { w.Buf = redcon.AppendBulk(w.Buf, b) }

// shortString writes a copy of s as a bulk string.
func (w *Writer) shortString(s string) { w.Buf = redcon.AppendBulkString(w.Buf, s) }

// Array writes the head of an array. n replies must follow.
func (w *Writer) Array(n int) { w.Buf = redcon.AppendArray(w.Buf, n) }

// Map writes the head of a map. The keys and values of that many pairs must follow alternately. In
// RESP2 the map is an array of the keys and values.
func (w *Writer) Map(pairs int) {
	if w.resp3() {
		w.aggregate('%', pairs)
		return
	}
	w.Array(2 * pairs)
}

// Set writes the head of a set. n distinct replies must follow, in any order. In RESP2 the set is
// an array.
func (w *Writer) Set(n int) {
	if w.resp3() {
		w.aggregate('~', n)
		return
	}
	w.Array(n)
}

// Push writes the head of a push message, which is not the reply to a command. n replies must
// follow. RESP2 has no such type, so the message is an array there. Only a RESP2 client in
// subscribe mode expects such messages; nothing may be pushed to other RESP2 clients.
func (w *Writer) Push(n int) {
	if w.resp3() {
		w.aggregate('>', n)
		return
	}
	w.Array(n)
}

// aggregate writes the head of a type that redcon does not know: the byte kind and the number n.
func (w *Writer) aggregate(kind byte, n int) {
	at := len(w.Buf)
	w.Buf = redcon.AppendArray(w.Buf, n)
	w.Buf[at] = kind
}

// Null writes null. In RESP2 it is the null bulk string.
func (w *Writer) Null() {
	if w.resp3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = redcon.AppendNull(w.Buf)
}

// NullArray writes the null array, as EXEC does after a failed WATCH. RESP3 has only one null,
// which NullArray writes to RESP3 clients.
func (w *Writer) NullArray() {
	if w.resp3() {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = append(w.Buf, "*-1\r\n"...)
}

// Bool writes b as a boolean. In RESP2 it is the integer 1 or 0.
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

// Double writes f as a double, in the form of [AppendDouble]. In RESP2 it is a bulk string.
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

// LongDouble writes text, a decimal number that may be more precise than a float64, as a double. In
// RESP2 it is a bulk string.
func (w *Writer) LongDouble(text string) {
	if !w.resp3() {
		w.shortString(text)
		return
	}
	w.Buf = append(w.Buf, ',')
	w.Buf = append(w.Buf, text...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Raw appends b, which is already encoded.
func (w *Writer) Raw(b []byte) { w.Buf = append(w.Buf, b...) }

// maxFiveInts is the number of bytes of room that FiveInts needs: a head of four bytes and five
// lines, each of a colon, twenty characters and a line end, and one spare byte, since putInt needs
// 24 bytes.
const maxFiveInts = 4 + 5*(1+20+2) + 1

// FiveInts writes an array of five integers, the reply of limiter commands such as CL.THROTTLE. It
// is the same in both protocol versions. FiveInts writes what Array and five calls of Int write,
// with a single check for room and without a loop for short numbers.
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
