package resp

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// A command that exceeds the limits is refused without closing the connection if [Limits.MaxSkip]
// allows that. Then the bytes of the command are discarded as they arrive, and at its end the error
// is returned.

// These are the beginnings of the errors that refuse a command.
const (
	refusedArgument = "ERR an argument of "
	refusedCommand  = "ERR the command is longer than "
)

// Refuses reports whether e, an error of [Guard.Next], refuses a single command, so that the
// connection stays open.
func (e Error) Refuses() bool {
	return e == ErrOOM || strings.HasPrefix(string(e), refusedArgument) || strings.HasPrefix(string(e), refusedCommand)
}

// refuse begins to discard the command that has an argument of size bytes. why is the error of
// checkBulk for the argument. It returns false if the command cannot be discarded, because it
// exceeds MaxSkip, the length is invalid, or why has no text for a refusal; then the connection is
// closed.
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

// refusalText returns the error that refuses a command because of an argument of size bytes. why is
// ErrBulkLength if the argument is too long, or ErrCommandTooBig if the command is. For other
// errors it returns "".
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

// Check returns an error if the command args exceeds MaxBulk or MaxCommand, otherwise "". It is for
// commands that are not parsed from the bytes of a client: a script can pass one long string
// thousands of times.
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

// GiveUp refuses the unfinished command, because there is no memory for the rest of it: the
// following calls of [Guard.Next] discard the rest and return why. It returns the number n of bytes
// of the command that were parsed, which the caller drops. ok is false if no command is unfinished,
// or if MaxSkip is 0, so that commands cannot be discarded.
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
		left++ // the head of an argument comes next: see throwAway
	}
	*g = Guard{left: left, refused: r}
	return n, true
}

// throwAway continues to discard a refused command. It returns the number n of bytes of in that
// belong to the command. done is true if they are the last of the command. After an error the
// connection is closed.
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
			g.left++ // the head of the argument comes next
			return n, false, err
		}
		if size < 0 || size > lim.MaxSkip-r.skipped { // the sizes are compared without a sum, which might overflow
			return n, false, ErrBulkLength
		}
		n += used
		r.skip, r.skipped = size+2, r.skipped+size
	}
}

// nextLength parses the head of an argument at the beginning of in. It returns the length of the
// argument and the number of bytes of the head. used is 0 if the head is incomplete or invalid.
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
