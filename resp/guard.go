package resp

import (
	"bytes"
	"math"

	"github.com/tidwall/redcon"
)

// Guard splits the bytes of one connection into commands exactly as Redis 7 does, and checks every
// length before it is used. A few bytes can crash redcon's own reader, block it or make it take all
// memory. Therefore that reader gets only bytes that the Guard has validated.
//
// A Guard remembers how much of an unfinished command it has parsed, so a client that sends single
// bytes costs about as much as one that sends whole commands. The zero Guard is ready for use. A
// Guard belongs to one connection, and only one goroutine at a time may use it.
//
// A Guard has two peculiarities of Redis on which a proxy may rely. First, a line of a frame ends
// at its CR, whatever byte follows, and the two bytes after an argument are skipped without a
// check. Second, Redis searches for line ends with strchr: after a NUL byte the end of the line is
// never found.
type Guard struct {
	pos  int // number of bytes of the unfinished frame that have been parsed
	seen int // number of bytes of the unfinished frame or line in which there is no line end
	left int // number of arguments of the frame that are not complete
	bulk int // 1 + length of the argument at pos; 0 if the head of an argument comes next

	refused *refusal // the state of discarding the command; nil if it is not being discarded
}

// refusal has the state of a Guard that discards a refused command.
type refusal struct {
	why     Error // the error with which the command is answered
	skip    int64 // number of remaining bytes of the present argument and its line end
	skipped int64 // number of bytes of the arguments so far, including the present one
}

// idle reports whether g is between two commands. This code is faster than a comparison with the
// zero Guard.
func (g *Guard) idle() bool { return g.pos|g.seen|g.left|g.bulk == 0 && g.refused == nil }

// Next parses the first command of in. It returns the arguments as out, in the memory of args if
// they fit, and the number n of bytes that it has consumed.
//
//   - If out is empty and there is no error, no command is complete. The caller drops the n
//     consumed bytes and calls Next again with the rest, once further bytes have arrived. n is
//     positive if in begins with requests that Redis ignores, such as "*0" or a blank line.
//   - The arguments point into in and are valid as long as the bytes of in. Those of an inline
//     command with quotes have memory of their own.
//   - An error is the reply after which the caller closes the connection. Earlier calls have
//     returned the commands before the invalid one.
//   - For an error with [Error.Refuses], a whole command was too long and has been discarded. The
//     error is the reply to it, and the connection stays open.
//
// lim has the limits of the client. They may change from one command to the next, since AUTH
// changes them.
func (g *Guard) Next(in []byte, args [][]byte, lim *Limits) (out [][]byte, n int, err Error) {
	if args, n = g.shortFrame(in, args, lim); n > 0 {
		return args, n, ""
	}
	for n < len(in) {
		var used int
		if g.refused != nil {
			var over bool
			used, over, err = g.throwAway(in[n:], lim)
			n += used
			if over {
				err = g.refused.why
				*g = Guard{}
			}
			return args[:0], n, err
		}
		// The first byte of a request determines its kind. Like Redis, determine it anew after an
		// empty request (not doing so was CVE-2026-27623).
		if in[n] == '*' {
			out, used, err = g.frame(in[n:], args[:0], lim)
		} else {
			out, used, err = g.inline(in[n:], args[:0], lim)
		}
		n += used
		if len(out) > 0 || used == 0 {
			return out, n, err
		}
		args = out
	}
	return args[:0], n, ""
}

// shortFrame splits a new and complete frame of at most nine short arguments. Most clients of a
// limiter send only such frames. It returns the arguments and the length of the frame. For any
// other input it consumes nothing and n is 0.
func (g *Guard) shortFrame(in []byte, args [][]byte, lim *Limits) (out [][]byte, n int) {
	if len(in) > 4 && in[0] == '*' && in[2] == '\r' && g.idle() {
		count := int(in[1] - '0')
		if count < 10 && count <= cap(args) && lim.checkArgs(int64(count)) == "" {
			if k, end := shortArgs(in, args[:count], 4, lim); k == count && k > 0 {
				return args[:count], end
			}
		}
	}
	return args[:0], 0
}

// frame parses the frame that begins at in[0], or continues to do so. It returns the arguments and
// the length of the frame. n is 0 if the frame is not complete, or invalid, which is the error. A
// frame that is complete at the first call is split in one pass. If the command is refused, n is
// the number of bytes parsed and g.refused is set.
func (g *Guard) frame(in []byte, args [][]byte, lim *Limits) (out [][]byte, n int, err Error) {
	pos, left, bulk := g.pos, g.left, g.bulk
	resumed := pos > 0
	if !resumed {
		pos, left, err = g.count(in, lim)
		if pos == 0 {
			return args[:0], 0, err
		}
	}
	// The arguments of an incomplete frame are not kept: whole splits the frame again.
	partial := resumed || left > (len(in)-pos)/leastArg
	if !partial && left > cap(args) {
		args = roomFor(left)
	}
	for {
		if bulk == 0 {
			var k int
			k, pos = shortArgs(in, args[len(args):min(cap(args), len(args)+left)], pos, lim)
			args = args[:len(args)+k]
			left -= k
		}
		if left == 0 {
			break
		}
		if partial && len(args) == cap(args) {
			args = scratch(args)
		}
		size := bulk - 1
		if bulk == 0 {
			var next int
			size, next, err = g.bulkHead(in, pos, lim)
			if next == 0 {
				g.pos, g.left, g.bulk = pos, left, 0
				return args[:0], 0, err
			}
			pos = next
			if g.refused != nil {
				*g = Guard{left: left, refused: g.refused}
				return args[:0], pos, ""
			}
		}
		if len(in)-pos-2 < size {
			g.pos, g.left, g.bulk = pos, left, size+1
			return args[:0], 0, ""
		}
		args = append(args, in[pos:pos+size:pos+size])
		pos += size + 2
		left--
		bulk = 0
	}
	if !g.idle() {
		*g = Guard{}
	}
	if resumed {
		args = whole(in[:pos], args)
	}
	return args, pos, ""
}

// count parses the head of the frame in. It returns the offset of the first argument as next, and
// the number of arguments as left. next is 0 if the head is incomplete or invalid. For a frame
// without arguments, which Redis ignores, left is 0.
func (g *Guard) count(in []byte, lim *Limits) (next, left int, err Error) {
	cr, err := g.lineEnd(in, 0, lim, ErrMbulkCountBig)
	if cr == 0 {
		return 0, 0, err
	}
	n, ok := parseLength(in[1:cr])
	if !ok {
		return 0, 0, ErrMultibulkLength
	}
	if err = lim.checkArgs(n); err != "" {
		return 0, 0, err
	}
	return cr + 2, int(max(n, 0)), ""
}

// shortArgs fills args with the arguments at pos of in, as long as they are complete, within all
// limits and shorter than 100 bytes. Nearly all arguments are. It returns their number k and the
// offset after them. bulkHead parses the arguments that shortArgs leaves.
func shortArgs(in []byte, args [][]byte, pos int, lim *Limits) (k, next int) {
	longest := lim.MaxBulk
	if lim.PreAuthBulk > 0 {
		longest = min(longest, lim.PreAuthBulk)
	}
	in = in[:min(len(in), lim.MaxCommand)]
	for k < len(args) {
		if len(in)-pos < 5 || in[pos] != '$' {
			break
		}
		// Index in itself, not a slice of it: the offset of an argument depends on the length of
		// the argument before, and slicing makes this chain of dependencies longer.
		tens, units := in[pos+1]-'0', in[pos+2]-'0'
		size, start := int(tens), pos+4
		if in[pos+2] != '\r' {
			size, start = size*10+int(units), pos+5
			if in[pos+3] != '\r' || tens == 0 || units > 9 {
				break
			}
		}
		end := start + size
		if tens > 9 || size > longest || len(in)-2 < end {
			break
		}
		args[k] = in[start:end:end]
		k++
		pos = end + 2
	}
	return k, pos
}

// leastArg is the minimum number of bytes of an argument, including its head and its line end.
const leastArg = 6

// scratch returns args, emptied, or a new slice if args has no capacity.
func scratch(args [][]byte) [][]byte {
	if cap(args) == 0 {
		return make([][]byte, 0, 8)
	}
	return args[:0]
}

// bulkHead parses the length of the argument whose head is at pos of in. It returns the length as
// size and the offset of the argument's bytes as next. next is 0 if the head is incomplete or
// invalid. If the argument is too long and the command is refused, bulkHead sets g.refused.
func (g *Guard) bulkHead(in []byte, pos int, lim *Limits) (size, next int, err Error) {
	cr, err := g.lineEnd(in, pos, lim, ErrBulkCountBig)
	if cr == 0 {
		return 0, 0, err
	}
	if in[pos] != '$' {
		return 0, 0, Error("ERR Protocol error: expected '$', got '" + string(in[pos:pos+1]) + "'")
	}
	n, ok := parseLength(in[pos+1 : cr])
	if !ok {
		return 0, 0, ErrBulkLength
	}
	if err = lim.checkBulk(n, cr+2); err != "" && !g.refuse(n, err, lim) {
		return 0, 0, err
	}
	return int(n), cr + 2, ""
}

// lineEnd returns the index in in of the CR that ends the line at pos, once the byte after the CR
// has arrived too, and otherwise 0. It remembers in g.seen how far it has searched. tooBig is the
// error for a line that exceeds Limits.MaxInline.
func (g *Guard) lineEnd(in []byte, pos int, lim *Limits, tooBig Error) (cr int, err Error) {
	last := pos + lim.MaxInline
	if pos == 0 || lim.MaxSkip == 0 {
		last = min(last, lim.MaxCommand) // a longer command is left to bulkHead, which refuses it once the length is known
	}
	i := max(pos, g.seen)
	for ; i < len(in) && i <= last && in[i] != 0; i++ {
		if in[i] != '\r' {
			continue
		}
		if i+1 < len(in) {
			return i, ""
		}
		break
	}
	g.seen = i
	switch {
	case len(in) <= last || i <= last && in[i] == '\r':
		return 0, ""
	case last == pos+lim.MaxInline:
		return 0, tooBig
	}
	return 0, ErrCommandTooBig
}

// whole splits a complete frame that has arrived in pieces. The Guard has checked all lengths in
// it. redcon's reader does not accept every line end that Redis accepts; if it fails, whole splits
// the frame with a new Guard. If redcon accepts the frame, it has read the same lengths as the
// Guard, so the arguments are the same.
func whole(frame []byte, args [][]byte) [][]byte {
	if n, _ := parseLength(frame[1:bytes.IndexByte(frame, '\r')]); n > int64(cap(args)) {
		args = roomFor(int(n))
	}
	complete, out, _, rest, err := redcon.ReadNextCommand(frame, args[:0])
	if complete && err == nil && len(rest) == 0 {
		return out
	}
	var fresh Guard
	proven := Limits{
		MaxArgs:    math.MaxInt32,
		MaxBulk:    math.MaxInt32,
		MaxCommand: math.MaxInt32,
		MaxInline:  math.MaxInt32 / 2,
	}
	out, _, _ = fresh.frame(frame, args[:0], &proven)
	return out
}
