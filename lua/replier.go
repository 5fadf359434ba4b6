package lua

import (
	"slices"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/resp"
)

// maxReply is the maximum length of a script's reply in bytes. Without it a small script could make
// an infinite reply by tables that contain each other, or one of 2^100 elements.
const maxReply = 64 << 20

const tooLarge = "reply of the script is too large"

// replier writes the result of a script as Redis 7 does. proto is the protocol version that the
// script has chosen, while w writes the protocol of the client. start is the length of w.Buf before
// the reply, and root is the whole result.
type replier struct {
	sandbox *sandbox.State
	inputs  *inputs
	lent    *lent
	w       *resp.Writer
	start   int
	proto   int
	root    glua.LValue
	sized   bool
	began   int // value of w.Length before the reply, which also counts the bytes outside of w.Buf
	// referred is the sum of the lengths of the strings to which the reply refers instead of
	// copying them. size counts it.
	referred int
	failed   string
}

// largeReply is the size in bytes at which the replier measures the whole reply before it writes
// the rest.
const largeReply = 64 << 10

func (out *replier) value(v glua.LValue, depth int) {
	if out.failed != "" {
		return
	}
	if out.sandbox.Guard.Killed() {
		out.failed = out.sandbox.Guard.Why()
		return
	}
	switch v := v.(type) {
	case glua.LString:
		out.text(string(v))
	case glua.LNumber:
		out.w.Int(value.Truncate(float64(v)))
	case glua.LBool:
		out.bool(bool(v))
	case *glua.LTable:
		out.table(v, depth)
	default:
		out.w.Null()
	}
}

func (out *replier) text(s string) {
	if !out.room(len(s)) {
		return
	}
	if !out.refers(s) {
		out.w.Bulk(value.Bytes(s))
		return
	}
	if part, ok := out.lent.part(s); ok {
		out.w.Lent(part)
		return
	}
	out.w.BulkString(s)
}

// refers reports whether the reply refers to s instead of copying it. It is false if s lies in an
// argument of the script, whose bytes belong to the caller and may be reused before the reply is
// sent.
func (out *replier) refers(s string) bool {
	return out.w.Refers(len(s)) && !out.inputs.borrowed(s)
}

// room reports whether n more bytes may be written. If not, it sets out.failed. When the reply
// becomes large, room calls makeRoom once.
func (out *replier) room(n int) bool {
	if out.w.Length()-out.began+n > maxReply {
		out.failed = tooLarge
	} else if !out.sized && len(out.w.Buf)-out.start+n > largeReply {
		out.makeRoom()
	}
	return out.failed == ""
}

// makeRoom reserves the memory of a large reply at once, since growing the buffer in steps would
// take up to twice the size. It sets out.failed if the reply is too large or does not fit into the
// memory of scripts. Before that it calls the guard's pause, so that a large reply is written in
// the background and is not copied again.
func (out *replier) makeRoom() {
	out.sized = true
	size := out.size(out.root, 0)
	if size > maxReply {
		out.failed = tooLarge
		return
	}
	if size -= out.referred; size <= largeReply {
		return
	}
	out.sandbox.Guard.PauseNow()
	if !out.sandbox.Guard.Fits(size) {
		out.failed = out.sandbox.Guard.Why()
		return
	}
	if out.w.Pieces == nil {
		out.w.Buf = slices.Grow(out.w.Buf, out.start+size-len(out.w.Buf))
	}
}

// lineSize is the maximum length, with the line end, of a number, a count of elements or an error
// of this package in a reply.
const lineSize = 32

// size returns the length of v in the reply, or a few bytes more. It stops counting beyond
// maxReply, and adds to out.referred.
func (out *replier) size(v glua.LValue, depth int) int {
	switch v := v.(type) {
	case glua.LString:
		if out.refers(string(v)) {
			out.referred += len(v)
		}
		return resp.BulkSize(len(v))
	case glua.LNumber:
		return resp.DecimalSize(int(value.Truncate(float64(v)))) + 3
	case *glua.LTable:
		if depth < maxDepth {
			return out.tableSize(out.sandbox.Original(v), depth)
		}
	}
	return lineSize
}

// tableSize does what size does, for a table. It interprets the fields of t in the same way as
// table.
func (out *replier) tableSize(t *glua.LTable, depth int) int {
	for _, name := range []string{"err", "ok", "big_number"} {
		if text, ok := get(t, name).(glua.LString); ok {
			return lineSize + len(text)
		}
	}
	if _, ok := get(t, "double").(glua.LNumber); ok {
		return lineSize
	}
	if m, ok := get(t, "map").(*glua.LTable); ok {
		return out.entriesSize(m, depth)
	}
	if s, ok := get(t, "set").(*glua.LTable); ok {
		return out.entriesSize(s, depth)
	}
	if v, ok := get(t, "verbatim_string").(*glua.LTable); ok {
		text, _ := get(v, "string").(glua.LString)
		return 2*lineSize + len(text)
	}
	n := 4
	for i := 1; n <= maxReply; i++ {
		v := t.RawGet(glua.LNumber(i))
		if v == glua.LNil {
			return n + resp.DecimalSize(i)
		}
		out.sandbox.Guard.Spend(1)
		n += out.size(v, depth+1)
	}
	return n
}

// entriesSize implements size for a map or a set.
func (out *replier) entriesSize(t *glua.LTable, depth int) int {
	t = out.sandbox.Original(t)
	n := lineSize
	for k, v := t.Next(glua.LNil); k != glua.LNil && n <= maxReply; k, v = t.Next(k) {
		out.sandbox.Guard.Spend(1)
		n += out.size(k, depth+1) + out.size(v, depth+1)
	}
	return n
}

func (out *replier) bool(b bool) {
	switch {
	case out.proto == 3:
		out.w.Bool(b)
	case b:
		out.w.Int(1)
	default:
		out.w.Null()
	}
}

func (out *replier) table(t *glua.LTable, depth int) {
	if depth >= maxDepth {
		out.w.Error("ERR reached lua stack limit")
		return
	}
	t = out.sandbox.Original(t)
	if text, ok := get(t, "err").(glua.LString); ok {
		if out.room(len(text)) {
			writeError(out.w, resp.Error(text), t)
		}
		return
	}
	if text, ok := get(t, "ok").(glua.LString); ok {
		if out.room(len(text)) {
			out.w.Status(strings.TrimRight(string(text), "\r\n"))
		}
		return
	}
	if f, ok := get(t, "double").(glua.LNumber); ok {
		out.w.Double(float64(f))
		return
	}
	if m, ok := get(t, "map").(*glua.LTable); ok {
		out.mapping(m, depth)
		return
	}
	if s, ok := get(t, "set").(*glua.LTable); ok {
		out.set(s, depth)
		return
	}
	if text, ok := get(t, "big_number").(glua.LString); ok {
		out.bigNumber(string(text))
		return
	}
	if v, ok := get(t, "verbatim_string").(*glua.LTable); ok {
		format, ok1 := get(v, "format").(glua.LString)
		text, ok2 := get(v, "string").(glua.LString)
		if ok1 && ok2 {
			if out.w.Proto != 3 {
				out.text(string(text))
			} else if out.room(len(text)) {
				out.w.Verbatim(string(format), string(text))
			}
			return
		}
	}
	out.array(t, depth)
}

// array writes the elements of t before the first nil as an array. If w writes in pieces, array
// spills each piece when the piece is full.
func (out *replier) array(t *glua.LTable, depth int) {
	n := 0
	for t.RawGet(glua.LNumber(n+1)) != glua.LNil {
		n++
	}
	out.w.Array(n)
	for i := 1; i <= n && out.room(0); i++ {
		out.value(t.RawGet(glua.LNumber(i)), depth+1)
		if out.w.Pieces != nil {
			out.w.Spill(out.start)
		}
	}
}

func count(t *glua.LTable) int {
	n := 0
	t.ForEach(func(_, _ glua.LValue) { n++ })
	return n
}

func (out *replier) mapping(t *glua.LTable, depth int) {
	t = out.sandbox.Original(t)
	out.w.Map(count(t))
	for k, v := t.Next(glua.LNil); k != glua.LNil && out.room(0); k, v = t.Next(k) {
		out.value(k, depth+1)
		out.value(v, depth+1)
	}
}

func (out *replier) set(t *glua.LTable, depth int) {
	t = out.sandbox.Original(t)
	out.w.Set(count(t))
	for k, _ := t.Next(glua.LNil); k != glua.LNil && out.room(0); k, _ = t.Next(k) {
		out.value(k, depth+1)
	}
}

// noLineEnds replaces characters of line ends by spaces.
var noLineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// bigNumber writes digits as a big number in RESP3, and as a string in RESP2. It writes nothing if
// the reply would become too long.
func (out *replier) bigNumber(digits string) {
	digits = noLineEnds.Replace(digits)
	if !out.room(len(digits)) {
		return
	}
	if out.w.Proto != 3 {
		out.text(digits)
		return
	}
	out.w.Buf = append(append(append(out.w.Buf, '('), digits...), "\r\n"...)
}

// plainReply reports whether converting the RESP2 reply b to a Lua value and back would give the
// same bytes in every protocol of the client. That holds for integers that a double represents
// exactly, strings, statuses, and arrays of these.
func plainReply(b []byte) bool {
	rest, ok := skipPlain(b, 0)
	return ok && len(rest) == 0 && len(b) < maxReply
}

// skipPlain returns the bytes of b after its first reply. The second result is false if that reply
// is not plain; see plainReply.
func skipPlain(b []byte, depth int) ([]byte, bool) {
	if len(b) < 4 || depth > 4 {
		return nil, false
	}
	kind := b[0]
	if kind == '+' {
		return skipStatus(b)
	}
	n, i := 0, 1
	negative := b[1] == '-'
	if negative {
		i++
	}
	start := i
	for i < len(b) && value.IsDigit(b[i]) {
		n = n*10 + int(b[i]-'0')
		if i++; i-start > 15 {
			return nil, false
		}
	}
	// This check rejects "-0" and "07", which no server writes.
	if i == start || i+2 > len(b) || b[i] != '\r' || b[i+1] != '\n' || b[start] == '0' && (negative || i-start > 1) {
		return nil, false
	}
	b = b[i+2:]
	switch {
	case kind == ':':
		return b, true
	case negative:
		return nil, false
	case kind == '$':
		if n > len(b)-2 || b[n] != '\r' || b[n+1] != '\n' {
			return nil, false
		}
		return b[n+2:], true
	case kind != '*':
		return nil, false
	}
	for range n {
		var ok bool
		if b, ok = skipPlain(b, depth+1); !ok {
			return nil, false
		}
	}
	return b, true
}

// skipStatus does what skipPlain does, for a status. It returns false for a status with a control
// character, which the conversion would change. No server writes such a status.
func skipStatus(b []byte) ([]byte, bool) {
	i := 1
	for i < len(b) && b[i] >= ' ' && b[i] < 0x7f {
		i++
	}
	if i == 1 || i+2 > len(b) || b[i] != '\r' || b[i+1] != '\n' {
		return nil, false
	}
	return b[i+2:], true
}
