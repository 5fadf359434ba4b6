package redis

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// Applied is the result of a stream.
type Applied struct {
	Position, Stored int64
	Dirty            []string
	Skipped          map[string]int64
	Asked            bool
}

// ApplyStreamInRounds applies a stream and calls round at the end of each round.
func ApplyStreamInRounds(in *bufio.Reader, ks *keyspace.Keyspace, r Runner, round func()) error {
	f := New(Options{Keyspace: ks, Runner: r, Round: round})
	return f.apply(context.Background(), in)
}

// ApplyStream applies a stream that begins at an offset, without a second connection.
func ApplyStream(in *bufio.Reader, ks *keyspace.Keyspace, r Runner, offset int64) (Applied, error) {
	f := New(Options{Keyspace: ks, Runner: r})
	f.keyTable.reset(offset)
	err := f.apply(context.Background(), in)
	a := Applied{Skipped: f.skipped.Counts()}
	a.Position, a.Stored = f.keyTable.at()
	for _, n := range f.keyTable.take(1 << 20) {
		a.Dirty = append(a.Dirty, n.key)
	}
	select {
	case <-f.kick:
		a.Asked = true
	default:
	}
	return a, err
}

// LoadRDB loads an RDB with its framing into ks.
func LoadRDB(in *bufio.Reader, ks *keyspace.Keyspace) (skipped map[string]int64, err error) {
	f := New(Options{Keyspace: ks})
	_, err = readRDB(in, f.values(ks.Restore).visitor())
	return f.skipped.Counts(), err
}

// ReadKeys reads keys of database 0 over conn, as the second connection does.
func ReadKeys(conn net.Conn, ks *keyspace.Keyspace, keys ...string) (at int64, err error) {
	f := New(Options{Keyspace: ks})
	s, err := newSecond(conn, f.values(ks.Restore))
	if err != nil {
		return 0, err
	}
	var names []name
	for _, k := range keys {
		names = append(names, name{0, k})
	}
	err = s.read(names, func(_ name, offset int64, read func() (bool, error)) error {
		at = offset
		_, err := read()
		return err
	})
	return at, err
}

// Book is a keyTable.
type Book struct {
	l *keyTable
}

// NewBook returns a keyTable at an offset.
func NewBook(offset int64) *Book {
	b := &Book{l: newKeyTable()}
	b.l.reset(offset)
	return b
}

func names(keys []string) (all []name) {
	for _, k := range keys {
		all = append(all, name{0, k})
	}
	return all
}

// Judge is keyTable.judge.
func (b *Book) Judge(end int64, keys ...string) string {
	return [...]string{"free", "included", "dirty"}[b.l.judge(names(keys), end)]
}

// Touch is keyTable.touch.
func (b *Book) Touch(start, end int64, force bool, keys ...string) {
	b.l.touch(names(keys), start, end, force)
}

// Doubt is keyTable.doubt.
func (b *Book) Doubt() { b.l.doubt() }

// Advance is keyTable.advance.
func (b *Book) Advance(to int64) { b.l.advance(to) }

// Take is keyTable.take without a limit.
func (b *Book) Take() (keys []string) {
	for _, n := range b.l.take(1 << 20) {
		keys = append(keys, n.key)
	}
	return keys
}

// Stored is keyTable.stored.
func (b *Book) Stored(key string, at int64) { b.l.stored(name{0, key}, at) }

// At returns keyTable.at, and the number of keys that remain after keyTable.forget.
func (b *Book) At() (position, stored int64, known int) {
	b.l.forget()
	position, stored = b.l.at()
	return position, stored, len(b.l.keys)
}

// Ends is endings.
type Ends struct {
	e endings
}

// NewEnds returns endings at an instant.
func NewEnds(now limit.Instant) *Ends { return &Ends{newEndings(now)} }

// File is endings.file.
func (e *Ends) File(db int, key string, at limit.Instant) { e.e.file(name{db, key}, at) }

// Strike is endings.strike.
func (e *Ends) Strike(db int, key string) { e.e.strike(name{db, key}) }

// StrikeAll is endings.strikeAll.
func (e *Ends) StrikeAll(db int) { e.e.strikeAll(db) }

// Reach is endings.reach.
func (e *Ends) Reach(now limit.Instant) (keys []string) {
	e.e.reach(now, func(n name) { keys = append(keys, fmt.Sprintf("%d:%s", n.db, n.key)) })
	return keys
}

// Kept returns how many keys both maps of the endings have.
func (e *Ends) Kept() (n int) {
	for _, d := range e.e.databases {
		n += len(d.filed)
		for _, keys := range d.due {
			n -= len(keys)
		}
		if n != 0 {
			return -1
		}
		n = 0
	}
	for _, d := range e.e.databases {
		n += len(d.filed)
	}
	return n
}

// KeptEndings returns how many keys an encoder has in its endings.
func (e *Encoder) KeptEndings() int { return (&Ends{e.ends}).Kept() }

// Pace is pace.
type Pace struct{ p pace }

// Due is pace.due.
func (p *Pace) Due(now limit.Instant) bool { return p.p.due(now) }

// Read is pace.read.
func (p *Pace) Read(bytes int64, now limit.Instant) { p.p.read(bytes, now) }

// Hurry is pace.reset.
func (p *Pace) Hurry() { p.p.reset() }
