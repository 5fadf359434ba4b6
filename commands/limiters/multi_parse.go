package limiters

import (
	"bytes"
	"hash/maphash"
	"math"
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

// multiArgs has the parsed arguments of an RL.MULTI. A worker reuses its memory.
type multiArgs struct {
	clause.Memory
	millis bool
	peek   bool
	detail bool
	// member has the word MEMBER and the argument after it; nil without MEMBER.
	member [][]byte
	id     clause.IdentityArgs // the arguments of the option ID or RESERVE
}

// parse parses the arguments
//
//	numkeys key [key ...] clause [clause ...] [MEMBER member] [ID token | RESERVE id ttl] [MS] [PEEK] [WITHDETAILS]
//
// into m. o has the bounds for the clauses; parse sets o.Unit. The error is "" on success.
func (m *multiArgs) parse(args [][]byte, o clause.Options) resp.Error {
	n, ok := arg.Int(args[0])
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
	if clause.Count(rest) != len(keys) {
		return resp.ErrClauseCount
	}
	if hasDuplicate(keys) {
		return resp.ErrDuplicateKey
	}
	m.Grow(len(keys))
	if o.Unit = time.Second; m.millis {
		o.Unit = time.Millisecond
	}
	for i, key := range keys {
		var words [][]byte
		words, rest = clause.Next(rest)
		if m.Clauses[i], err = m.Rooms[i].Parse(words, key, o); err != "" {
			return err
		}
		m.Clauses[i].Peek = m.peek
	}
	if err = m.lease(); err == "" && m.id.Reserves() {
		err = m.reserve(o.Unit, keys)
	}
	return err
}

// reserve checks the arguments of RESERVE and whether the clauses for keys can be reserved. A place of a CC
// clause is taken for the time of the reservation. unit is the unit of times.
func (m *multiArgs) reserve(unit time.Duration, keys [][]byte) resp.Error {
	if m.peek {
		return resp.SyntaxNear([]byte("RESERVE"))
	}
	exact, least := true, int64(math.MaxInt64)
	for i := range m.Rooms {
		switch r := &m.Rooms[i]; r.Kind {
		case clause.Window:
			least = min(least, r.Window.Quantity)
		case clause.Bucket:
			least = min(least, r.Bucket.Quantity)
			exact = exact && r.Bucket.Mode == tokenbucket.Greedy
		case clause.Lease:
			if i == 0 {
				return resp.ErrReserveFirst
			}
		default:
			exact = false
		}
	}
	if err := m.id.Check(unit, least, exact); err != "" {
		return err
	}
	if reservation.CheckKeys(keys) != nil {
		return resp.ErrReserveKeys
	}
	for i := range m.Rooms {
		m.Rooms[i].Lease.Lease = m.id.TTL // limits of other kinds ignore this field
	}
	return ""
}

// lease sets the member of all CC clauses to the argument of MEMBER, or to the id of a reservation. It returns
// an error if there is a CC clause but neither of them, if there is a MEMBER but no CC clause, or if the
// member is too long.
func (m *multiArgs) lease() resp.Error {
	some := false
	for i := range m.Rooms {
		if m.Rooms[i].Kind != clause.Lease {
			continue
		}
		some = true
		member := m.id.Token
		if m.member != nil {
			member = m.member[1]
		} else if !m.id.Reserves() {
			return resp.ErrNoMember
		}
		if err := m.Rooms[i].SetMember(member); err != "" {
			return err
		}
	}
	if m.member != nil && !some {
		return resp.SyntaxNear(m.member[0])
	}
	return ""
}

// options parses the options at the end of args, which apply to the whole command, and returns the
// arguments before them. A member or a token may be any word, even the name of an option or of a
// family. So options searches for the first MEMBER, ID or RESERVE, since no clause contains these words,
// and reads the words from there on from left to right.
func (m *multiArgs) options(args [][]byte) ([][]byte, resp.Error) {
	m.millis, m.peek, m.detail, m.member, m.id = false, false, false, nil, clause.IdentityArgs{}
	for i, word := range args {
		if arg.IsWord(word, "MEMBER") || arg.IsWord(word, "ID") || arg.IsWord(word, "RESERVE") {
			if err := m.valued(args[i:]); err != "" {
				return nil, err
			}
			args = args[:i]
			break
		}
	}
	for len(args) > 0 && m.option(args[len(args)-1]) != nil {
		if err := m.flag(args[len(args)-1]); err != "" {
			return nil, err
		}
		args = args[:len(args)-1]
	}
	return args, ""
}

// valued parses args from left to right. They begin with MEMBER, ID or RESERVE.
func (m *multiArgs) valued(args [][]byte) (err resp.Error) {
	for len(args) > 0 && err == "" {
		word, rest := args[0], args[1:]
		switch {
		case arg.IsWord(word, "MEMBER") && m.member == nil && len(rest) > 0:
			m.member, rest = args[:2], rest[1:]
		case arg.IsWord(word, "ID") && m.id.Token == nil && len(rest) > 0:
			err, rest = m.id.Identify(rest[0]), rest[1:]
		case arg.IsWord(word, "RESERVE") && m.id.Token == nil && len(rest) > 1:
			err, rest = m.id.Reserve(rest[0], rest[1]), rest[2:]
		default:
			err = m.flag(word)
		}
		args = rest
	}
	return err
}

// flag sets the option called word, which takes no value. It returns an error if there is no such
// option, or if the option is set already.
func (m *multiArgs) flag(word []byte) resp.Error {
	option := m.option(word)
	if option == nil {
		return resp.SyntaxNear(word)
	}
	return arg.Once(word, option)
}

// option returns the field of the option called word, which takes no value; nil if there is no such
// option.
func (m *multiArgs) option(word []byte) *bool {
	switch {
	case arg.IsWord(word, "MS"):
		return &m.millis
	case arg.IsWord(word, "PEEK"):
		return &m.peek
	case arg.IsWord(word, "WITHDETAILS"):
		return &m.detail
	}
	return nil
}

// hasDuplicate reports whether two of keys are equal. For more than 16 keys it uses a hash table,
// because comparing all pairs of thousands of keys would take too long.
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

// hasDuplicateOfMany is hasDuplicate with a hash table. The hash has a random seed, so that a
// client cannot choose keys that collide.
func hasDuplicateOfMany(keys [][]byte) bool {
	seed, mask := maphash.MakeSeed(), uint64(1)<<bits.Len(uint(2*len(keys)))-1
	slots := make([]int32, mask+1) // a slot has the index of a key plus one; 0 is free
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

// trim is called at the end of a batch. It drops the member and the token, and frees the memory if
// a call had many clauses.
func (m *multiArgs) trim() {
	m.member, m.id = nil, clause.IdentityArgs{}
	m.Trim()
}
