// Package use makes commands of RL.USE for the ports of other protocols, and reads their replies.
package use

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/resp"
)

// Command is the name of the command that this package encodes.
const Command = "RL.USE"

// Call has the parameters of a call of RL.USE.
type Call struct {
	Policy, Key []byte
	Quantity    int64
	// Mode is the mode of the call: PEEK, PARTIAL or FORCE, or "" for none.
	Mode string
	// Member is the argument of MEMBER, for a policy with leases; "" leaves it out.
	Member string
	// Own is the argument of LIMIT: a limit that the call brings with it.
	Own Window
}

// Window is a limit of Most units in each window of Seconds. If Seconds is 0, there is no limit.
type Window struct{ Most, Seconds int64 }

// AppendTo appends c to dst as a command. [Answer.Read] reads its reply.
func (c *Call) AppendTo(dst []byte) []byte {
	const fixed = 6 // number of words that every call has: RL.USE, policy, key, quantity, MS and WITHDETAILS
	words := fixed
	if c.Mode != "" {
		words++
	}
	if c.Member != "" {
		words += 2
	}
	if c.Own.Seconds > 0 {
		words += 3
	}
	dst = append(strconv.AppendInt(append(dst, '*'), int64(words), 10), "\r\n$6\r\n"+Command+"\r\n"...)
	dst = appendNumber(appendWord(appendWord(dst, c.Policy), c.Key), c.Quantity)
	if c.Mode != "" {
		dst = appendWord(dst, c.Mode)
	}
	if c.Member != "" {
		dst = appendWord(appendWord(dst, "MEMBER"), c.Member)
	}
	if c.Own.Seconds > 0 {
		dst = appendNumber(appendNumber(appendWord(dst, "LIMIT"), c.Own.Most), c.Own.Seconds*1000)
	}
	return appendWord(appendWord(dst, "MS"), "WITHDETAILS")
}

// appendWord appends a word of a command to dst.
func appendWord[T string | []byte](dst []byte, word T) []byte {
	dst = append(strconv.AppendInt(append(dst, '$'), int64(len(word)), 10), "\r\n"...)
	return append(append(dst, word...), "\r\n"...)
}

// appendNumber does what appendWord does, for a number.
func appendNumber(dst []byte, n int64) []byte {
	var digits [20]byte
	return appendWord(dst, strconv.AppendInt(digits[:0], n, 10))
}

// Decision is a decision on a call, or on one of its limits.
type Decision struct {
	// Refused is 0 if the limit does not deny the call. Otherwise it is 1 or, in the mode PARTIAL, the number of units
	// that were not granted.
	Refused int64
	// Limit and Remaining are numbers of units, at least 0.
	Limit, Remaining int64
	// RetryMillis is the time in milliseconds until the call would pass. -1 means that waiting does not help: the call
	// has passed, or will never pass.
	RetryMillis int64
	// ResetMillis is the time in milliseconds until no unit is in use; 0 if none is in use, and -1
	// for never.
	ResetMillis int64
}

// Answer is the answer to a call. Read reuses its memory.
type Answer struct {
	// Binding is the decision on the call as a whole.
	Binding Decision
	// Clauses are the decisions on each limit, at least one.
	Clauses []Decision
}

// ErrReply means that a reply is not a reply of RL.USE.
var ErrReply = errors.New("the session has sent an unexpected reply")

// Read reads the first reply in replies into a, and returns the replies after it. The error is a [resp.Error] for an
// error reply, after which rest is valid, and otherwise [ErrReply].
func (a *Answer) Read(replies []byte) (rest []byte, err error) {
	if text, ok := bytes.CutPrefix(replies, []byte{'-'}); ok {
		line, rest, ok := bytes.Cut(text, []byte("\r\n"))
		if !ok {
			return nil, ErrReply
		}
		return rest, resp.Error(line)
	}
	r := reader{rest: replies}
	if r.integer('*') != 2 {
		return nil, ErrReply
	}
	a.Clauses = a.Clauses[:0]
	a.Binding = r.decision()
	for range max(r.integer('*'), 0) {
		a.Clauses = append(a.Clauses, r.decision())
	}
	if r.bad || len(a.Clauses) == 0 {
		return nil, ErrReply
	}
	return r.rest, nil
}

// reader reads the arrays and integers of a reply. After a fault, bad is true, and all reads return
// zeros.
type reader struct {
	rest []byte
	bad  bool
}

// maxElements is the maximum length of an array in a reply of RL.USE, which has an element for each clause or policy.
const maxElements = 64

// integer reads an integer, or the length of an array, which is at most maxElements, or -1 if there is none. kind is the
// character that it begins with.
func (r *reader) integer(kind byte) int64 {
	line, rest, ok := bytes.Cut(r.rest, []byte("\r\n"))
	if r.bad || !ok || len(line) == 0 || line[0] != kind {
		r.bad = true
		return 0
	}
	r.rest = rest
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	if err != nil || kind == '*' && (n < -1 || n > maxElements) {
		r.bad = true
		return 0
	}
	return n
}

// decision reads the five integers of a decision.
func (r *reader) decision() (d Decision) {
	if r.integer('*') != 5 {
		r.bad = true
		return d
	}
	d.Refused, d.Limit, d.Remaining = r.integer(':'), r.integer(':'), r.integer(':')
	d.RetryMillis, d.ResetMillis = r.integer(':'), r.integer(':')
	return d
}
