package web

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/resp"
)

// call is one call of RL.USE.
type call struct {
	policy, key []byte
	quantity    int64
	mode        string // PEEK, PARTIAL, FORCE or ""
	member      string // "" names none
}

// answer is the answer to a call.
type answer struct {
	headers.Answer
	// missing is the number of units that were not granted: of a call that takes a part those that it did not get,
	// and of any other denied call all of them.
	missing int64
}

// errReply says that a session has sent something else than RL.USE answers.
var errReply = errors.New("the session has sent an unexpected reply")

// maxInt is the largest number of digits of an int64, with its sign.
const maxInt = 20

// maxWords is the maximum number of words of a call.
const maxWords = 9

// appendTo appends the call as a command. Its reply is read by parse.
func (c *call) appendTo(dst []byte) []byte {
	var (
		room   [maxWords][]byte
		digits [maxInt]byte
	)
	words := append(room[:0], []byte("RL.USE"), c.policy, c.key, strconv.AppendInt(digits[:0], c.quantity, 10))
	if c.mode != "" {
		words = append(words, []byte(c.mode))
	}
	if c.member != "" {
		words = append(words, []byte("MEMBER"), []byte(c.member))
	}
	return resp.AppendCommand(dst, append(words, []byte("MS"), []byte("WITHDETAILS"))...)
}

// parse reads reply, the reply to c, into a. An error reply is returned as a [Refusal]. Of the clauses a has
// what the reply says of them.
func (c *call) parse(reply []byte, a *answer) error {
	if text, ok := bytes.CutPrefix(reply, []byte{'-'}); ok {
		return Refusal(bytes.TrimRight(text, "\r\n"))
	}
	r := reader{rest: reply}
	if r.length('*') != 2 {
		return errReply
	}
	a.Policy, a.Clauses = string(c.policy), a.Clauses[:0]
	a.missing = r.clause(&a.Binding) // 1 for a denial, but with PARTIAL a number of units
	for range r.length('*') {
		a.Clauses = append(a.Clauses, headers.Clause{})
		r.clause(&a.Clauses[len(a.Clauses)-1])
	}
	if r.bad || len(r.rest) > 0 || len(a.Clauses) == 0 {
		return errReply
	}
	a.Denied = a.missing != 0
	if c.mode == "PARTIAL" {
		a.Denied = a.missing != 0 && a.missing >= c.quantity // it has got nothing
	} else if a.Denied {
		a.missing = max(c.quantity, 0)
	}
	return nil
}

// describe adds to a what the limits say about its clauses. limits are those that apply to the key, and blocked
// says that a block does. known is false if there is no such policy: then the call was decided under none. A
// policy may have changed since: then the clauses stay as they are.
func (a *answer) describe(limits []Limit, blocked, known bool) {
	a.Blocked = blocked && a.Denied
	if !known {
		a.Binding.Unlimited = true
		for i := range a.Clauses {
			a.Clauses[i].Unlimited = true
		}
		return
	}
	if len(limits) != len(a.Clauses) {
		return
	}
	for i := range limits {
		c := &a.Clauses[i]
		c.WindowMillis = int64((limits[i].Window + time.Millisecond - 1) / time.Millisecond)
		c.Concurrent, c.Unlimited = limits[i].Concurrent, limits[i].Unlimited
	}
	a.Binding.Unlimited = limits[0].Unlimited // which stands alone
}

// reader reads the arrays and integers of a reply. After a fault bad is set, and it reads zeros.
type reader struct {
	rest []byte
	bad  bool
}

// maxElements is the maximum length of an array in a reply of RL.USE, which has an element for each clause.
const maxElements = 16

// length reads the length of an array, or an integer, by what it begins with. That of an array is at most
// maxElements.
func (r *reader) length(kind byte) int64 {
	line, rest, ok := bytes.Cut(r.rest, []byte("\r\n"))
	if r.bad || !ok || len(line) == 0 || line[0] != kind {
		r.bad = true
		return 0
	}
	r.rest = rest
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	if err != nil || kind == '*' && (n < 0 || n > maxElements) {
		r.bad = true
		return 0
	}
	return n
}

// clause reads the five integers of a decision into c. It returns the first, which is 0 if the limit is not in the way.
func (r *reader) clause(c *headers.Clause) (refused int64) {
	if r.length('*') != 5 {
		r.bad = true
		return 0
	}
	refused = r.length(':')
	c.Denies, c.Limit, c.Remaining = refused != 0, r.length(':'), r.length(':')
	c.RetryMillis, c.ResetMillis = r.length(':'), r.length(':')
	return refused
}
