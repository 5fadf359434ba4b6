package resp

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// A command that is longer than the limits admit is refused, not fatal, where
// [Limits.MaxSkip] says so: its bytes are thrown away as they come, and the error is
// returned in its place once all of them have.

// How the replies begin.
const (
	refusedArgument = "ERR an argument of "
	refusedCommand  = "ERR the command is longer than "
)

// Refuses reports whether e, which [Guard.Next] returned, refuses one command and does not
// end the connection.
func (e Error) Refuses() bool {
	return e == ErrOOM || strings.HasPrefix(string(e), refusedArgument) || strings.HasPrefix(string(e), refusedCommand)
}

// refuse begins to throw away the command of which an argument of size bytes is too
// long, by why. It reports whether that may be done: what is longer than MaxSkip, or has
// no length at all, is still the end of the connection.
func (g *Guard) refuse(size int64, why Error, lim *Limits) bool {
	if size < 0 || size > lim.MaxSkip {
		return false
	}
	text := lim.refusalText(size, why)
	if text == "" {
		return false
	}
	g.refused = &refusal{why: text, skip: size + 2, skipped: size}
	return true
}

// refusalText is the error for an argument of size bytes that is too long, or with which its
// command is, by why; "" if why is something else.
func (l *Limits) refusalText(size int64, why Error) Error {
	switch why {
	case ErrBulkLength:
		return Error(refusedArgument + strconv.FormatInt(size, 10) + " bytes is longer than proto-max-bulk-len, " + strconv.Itoa(l.MaxBulk))
	case ErrCommandTooBig:
		option := cmp.Or(l.CommandOption, "client-query-buffer-limit")
		return Error(refusedCommand + option + " admits, " + strconv.Itoa(l.MaxCommand))
	}
	return ""
}

// Check refuses a command that is longer than a client's may be, for those that come from
// elsewhere: a script can name one long string thousands of times. "" admits it.
func (l *Limits) Check(args [][]byte) Error {
	all := 0
	for _, a := range args {
		if len(a) > l.MaxBulk {
			return l.refusalText(int64(len(a)), ErrBulkLength)
		}
		all += len(a)
	}
	if all > l.MaxCommand {
		return l.refusalText(0, ErrCommandTooBig)
	}
	return ""
}

// GiveUp refuses the command of which in is the beginning, because there is no memory for
// the rest of it. It returns how many bytes of in are done with, and whether that may be
// done: nothing is where no command is unfinished, or it is one that Next would end the
// connection for.
func (g *Guard) GiveUp(why Error, lim *Limits) (n int, ok bool) {
	if g.refused != nil || g.pos == 0 || lim.MaxSkip == 0 {
		return 0, false
	}
	n = g.pos
	r := &refusal{why: why}
	left := g.left
	if g.bulk > 0 {
		r.skipped = int64(g.bulk - 1)
		r.skip = r.skipped + 2
	} else {
		left++ // the head of an argument is due: see throwAway
	}
	*g = Guard{left: left, refused: r}
	return n, true
}

// throwAway goes on with a refused command. It returns how many bytes of in belong to
// it, and whether these were the last; an error ends the connection.
func (g *Guard) throwAway(in []byte, lim *Limits) (n int, done bool, err Error) {
	r := g.refused
	for {
		k := int(min(r.skip, int64(len(in)-n)))
		n += k
		if r.skip -= int64(k); r.skip > 0 {
			return n, false, ""
		}
		if g.left--; g.left == 0 {
			return n, true, ""
		}
		size, used, err := nextLength(in[n:], lim)
		if used == 0 {
			g.left++ // its head is due
			return n, false, err
		}
		if size < 0 || size > lim.MaxSkip-r.skipped { // a sum could wrap
			return n, false, ErrBulkLength
		}
		n += used
		r.skip, r.skipped = size+2, r.skipped+size
	}
}

// nextLength reads the head of an argument, 0 bytes while that is unfinished.
func nextLength(in []byte, lim *Limits) (size int64, used int, err Error) {
	cr := bytes.IndexByte(in[:min(len(in), lim.MaxInline+1)], '\r')
	switch {
	case cr < 0 && len(in) > lim.MaxInline:
		return 0, 0, ErrBulkCountBig
	case cr < 0 || cr+1 >= len(in):
		return 0, 0, ""
	case in[0] != '$':
		return 0, 0, Error("ERR Protocol error: expected '$', got '" + string(in[:1]) + "'")
	}
	size, ok := parseLength(in[1:cr])
	if !ok {
		return 0, 0, ErrBulkLength
	}
	return size, cr + 2, ""
}
