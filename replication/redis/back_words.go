package redis

import (
	"math"
	"strconv"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// The elements of a collection are divided into commands. A command ends after the element with
// which it has partElements words or partBytes bytes.
const (
	partElements = 512
	partBytes    = 64 << 10
)

// appendHead appends the header of a command with the given number of words.
func appendHead(out []byte, words int) []byte {
	out = append(out, '*')
	out = strconv.AppendInt(out, int64(words), 10)
	return append(out, '\r', '\n')
}

// appendWord appends the word w of a command.
func appendWord[T string | []byte](out []byte, w T) []byte {
	out = append(out, '$')
	out = strconv.AppendInt(out, int64(len(w)), 10)
	out = append(out, '\r', '\n')
	out = append(out, w...)
	return append(out, '\r', '\n')
}

// appendCommand appends a command with the given words.
func appendCommand(out []byte, words ...string) []byte {
	out = appendHead(out, len(words))
	for _, w := range words {
		out = appendWord(out, w)
	}
	return out
}

// millis returns the expiry of e in milliseconds of Unix time, rounded up, at least 1; or 0 if e
// does not expire. c is the clock of the expiry.
func millis(e *entry.Entry, c clock.Clock) int64 {
	if e.Expiry == entry.NoExpiry {
		return 0
	}
	at := int64(c.Civil(e.Expiry))
	ms := at / 1e6
	if at%1e6 > 0 {
		ms++
	}
	return max(ms, 1)
}

// text returns the string value that Redis has for e, which is a string or a key of redis-cell. For
// a key of redis-cell, this is the theoretical arrival time (TAT) in civil time.
func text(e *entry.Entry, c clock.Clock) []byte {
	if e.Kind.Plain() != entry.Cell {
		return e.Value
	}
	tat := entry.CellTAT(e)
	if tat != limit.MaxInstant {
		tat = c.Civil(tat)
	}
	return gcra.AppendDecimal(nil, tat)
}

// sendable reports whether Redis has an equivalent for entries of kind k.
func sendable(k entry.Kind) bool {
	return k == entry.String || k.Plain() == entry.Cell || k.IsCollection()
}

// appendEntry appends commands that set key to e. The kind of e must be sendable. c is the clock
// of the entry's instants.
func appendEntry(out []byte, key string, e *entry.Entry, c clock.Clock) []byte {
	ms := millis(e, c)
	if !e.Kind.IsCollection() {
		words := 3
		if ms != 0 {
			words = 5
		}
		out = appendWord(appendWord(appendWord(appendHead(out, words), "SET"), key), text(e, c))
		if ms != 0 {
			out = appendWord(appendWord(out, "PXAT"), strconv.FormatInt(ms, 10))
		}
		return out
	}
	out = appendCommand(out, "MULTI")
	out = appendCommand(out, "DEL", key)
	out = appendElements(out, key, e)
	if ms != 0 {
		out = appendCommand(out, "PEXPIREAT", key, strconv.FormatInt(ms, 10))
	}
	return appendCommand(out, "EXEC")
}

// parts distributes the elements of a collection over several commands.
type parts struct {
	out       []byte
	name, key string
	pending   []byte
	words     int
}

func (p *parts) word(w []byte) {
	p.pending = appendWord(p.pending, w)
	p.words++
}

// cut ends the current command if it is long enough or last is true. It is called between
// elements.
func (p *parts) cut(last bool) {
	if p.words == 0 || !last && p.words < partElements && len(p.pending) < partBytes {
		return
	}
	p.out = appendWord(appendWord(appendHead(p.out, 2+p.words), p.name), p.key)
	p.out = append(p.out, p.pending...)
	p.pending, p.words = p.pending[:0], 0
}

// appendElements appends commands that add the elements of e, a collection, to key.
func appendElements(out []byte, key string, e *entry.Entry) []byte {
	p := &parts{out: out, key: key}
	switch e.Kind {
	case entry.List:
		var l collection.List
		l.Load(e.Value)
		p.name = "RPUSH"
		for v := range l.Range(0, l.Len()) {
			p.word(v)
			p.cut(false)
		}
	case entry.Set:
		var s collection.Set
		s.Load(e.Value)
		p.name = "SADD"
		for m := range s.All() {
			p.word(m)
			p.cut(false)
		}
	case entry.Hash:
		var h collection.Hash
		h.Load(e.Value)
		p.name = "HSET"
		for f, v := range h.All() {
			p.word(f)
			p.word(v)
			p.cut(false)
		}
	case entry.SortedSet:
		var z collection.SortedSet
		z.Load(e.Value)
		p.name = "ZADD"
		for m, score := range z.Range(0, z.Len()) {
			p.word(appendScore(nil, score))
			p.word(m)
			p.cut(false)
		}
	}
	p.cut(true)
	return p.out
}

// appendScore appends score in a form that Redis parses to the same value.
func appendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}
