package limiters

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// multiArgs is a parsed RL.MULTI. Its room is a worker's scratch.
type multiArgs struct {
	multiRoom
	millis bool
	peek   bool
	detail bool
}

// multiRoom is what the clauses of an RL.MULTI need.
type multiRoom struct {
	clauses []decide.Clause
	details []limit.Decision
	calls   []clauseCalls
}

// wideMultis keeps room for calls that are wider than what a worker has room for. What is
// in there points to nothing that is still needed.
var wideMultis sync.Pool // of *multiRoom

// laneClauses is for how many clauses a worker keeps room.
const laneClauses = 64

// clauseCalls is where the calls live that a clause points to.
type clauseCalls struct {
	throttle throttleCall
	window   slidingwindow.Call
	bucket   tokenbucket.Call
}

// parse reads `numkeys key [key ...] clause [clause ...] [MS] [PEEK] [WITHDETAILS]`.
func (m *multiArgs) parse(args [][]byte, logMax int64) resp.Error {
	n, ok := parse.Int(args[0])
	switch {
	case !ok:
		return resp.ErrNotInteger
	case n < 1:
		return resp.ErrNumkeys
	case n > int64(len(args)-1):
		return resp.ErrNumkeysArgs
	}
	keys, rest := args[1:1+n], args[1+n:]
	rest, err := m.options(rest)
	if err != "" {
		return err
	}
	if countClauses(rest) != len(keys) {
		return resp.ErrClauseCount
	}
	if hasDuplicate(keys) {
		return resp.ErrDuplicateKey
	}
	m.grow(len(keys))
	for i, key := range keys {
		end := 1
		for end < len(rest) && clauseWord(rest[end]) == 0 {
			end++
		}
		if err := m.clause(i, key, rest[:end], logMax); err != "" {
			return err
		}
		rest = rest[end:]
	}
	return ""
}

// options cuts the options of the whole command off the end of args.
func (m *multiArgs) options(args [][]byte) ([][]byte, resp.Error) {
	m.millis, m.peek, m.detail = false, false, false
	for len(args) > 0 {
		var option *bool
		switch last := args[len(args)-1]; {
		case parse.IsWord(last, "MS"):
			option = &m.millis
		case parse.IsWord(last, "PEEK"):
			option = &m.peek
		case parse.IsWord(last, "WITHDETAILS"):
			option = &m.detail
		default:
			return args, ""
		}
		if err := command.Once(args[len(args)-1], option); err != "" {
			return nil, err
		}
		args = args[:len(args)-1]
	}
	return args, ""
}

// clauseWord returns the first letter of the word that begins a clause, else 0.
func clauseWord(b []byte) byte {
	if len(b) != 2 {
		return 0
	}
	const upper = ^byte('a' - 'A')
	switch [2]byte{b[0] & upper, b[1] & upper} {
	case [2]byte{'C', 'L'}, [2]byte{'S', 'W'}, [2]byte{'T', 'B'}:
		return b[0] & upper
	}
	return 0
}

// countClauses is the number of clauses, or -1 if something comes before them.
func countClauses(args [][]byte) int {
	if len(args) > 0 && clauseWord(args[0]) == 0 {
		return -1
	}
	n := 0
	for _, a := range args {
		if clauseWord(a) != 0 {
			n++
		}
	}
	return n
}

// hasDuplicate reports whether two keys are equal. Beyond a few keys it is worth a
// table of them: with thousands, comparing all pairs would take long.
func hasDuplicate(keys [][]byte) bool {
	if len(keys) > 16 {
		return hasDuplicateOfMany(keys)
	}
	for i, k := range keys {
		for _, other := range keys[:i] {
			if bytes.Equal(k, other) {
				return true
			}
		}
	}
	return false
}

// hasDuplicateOfMany looks for each key among those before it, in slots by a seeded
// hash, so that no client knows which keys share one.
func hasDuplicateOfMany(keys [][]byte) bool {
	seed, mask := maphash.MakeSeed(), uint64(1)<<bits.Len(uint(2*len(keys)))-1
	slots := make([]int32, mask+1) // one more than the index of a key; 0 is free
	for i, k := range keys {
		at := maphash.Bytes(seed, k) & mask
		for ; slots[at] != 0; at = (at + 1) & mask {
			if bytes.Equal(keys[slots[at]-1], k) {
				return true
			}
		}
		slots[at] = int32(i + 1)
	}
	return false
}

func (m *multiArgs) grow(n int) {
	if n > cap(m.clauses) {
		m.multiRoom = newMultiRoom(n)
	}
	m.clauses, m.details, m.calls = m.clauses[:n], m.details[:n], m.calls[:n]
}

// newMultiRoom returns room for n clauses at least.
func newMultiRoom(n int) multiRoom {
	if n > laneClauses {
		if room, _ := wideMultis.Get().(*multiRoom); room != nil && cap(room.clauses) >= n {
			return *room
		}
	}
	return multiRoom{make([]decide.Clause, n), make([]limit.Decision, n), make([]clauseCalls, n)}
}

// trim has others use the room that a very wide call needed, behind its batch.
func (m *multiArgs) trim() {
	if cap(m.clauses) > laneClauses {
		clear(m.clauses) // they point to the words of the command
		room := m.multiRoom
		wideMultis.Put(&room)
		m.multiRoom = multiRoom{}
	}
}

// clause parses the i-th clause, its word included.
func (m *multiArgs) clause(i int, key []byte, args [][]byte, logMax int64) resp.Error {
	unit := time.Second
	if m.millis {
		unit = time.Millisecond
	}
	calls := &m.calls[i]
	m.clauses[i] = decide.Clause{Key: key, Peek: m.peek}
	switch clause := &m.clauses[i]; clauseWord(args[0]) {
	case 'C':
		clause.Quota = &calls.throttle.quota
		err := parseThrottleClause(args, unit, &calls.throttle)
		clause.Quantity = calls.throttle.quantity
		return err
	case 'S':
		clause.Window = &calls.window
		return parseWindowClause(key, args, unit, logMax, &calls.window)
	default:
		clause.Bucket = &calls.bucket
		return parseBucketClause(args, unit, &calls.bucket)
	}
}
