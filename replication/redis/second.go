package redis

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/rdb"
)

// batchKeys is the maximum number of keys that are read in one transaction, which blocks the
// primary while it runs.
const batchKeys = 128

// unreadable is the name in the Tally that counts keys whose DUMP the primary has answered with an
// error.
const unreadable = "a key that cannot be read"

// second is the second connection to the primary. It reads keys.
type second struct {
	talk
	db int
	// exact says that the primary has the command PEXPIRETIME (7.0 and later).
	exact bool
	// clustered says that the primary is a node of a cluster, which refuses transactions with
	// keys of several slots.
	clustered bool
	// dumped is the number of bytes in the replies to DUMP.
	dumped int64
	// source passes the replies to DUMP to values. It is reused.
	values *values
	source *bufio.Reader
}

// newSecond returns a second over conn, which must be authenticated. It waits for a reply that
// shows whether the primary has PEXPIRETIME. v gets the values that are read.
func newSecond(conn net.Conn, v *values) (*second, error) {
	s := &second{talk: talk{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}, source: bufio.NewReaderSize(nil, 512), values: v}
	s.command("PEXPIRETIME", "")
	if err := s.send(); err != nil {
		return nil, err
	}
	_, err := s.integer()
	var refused errReply
	switch {
	case errors.As(err, &refused) && strings.HasPrefix(string(refused), "ERR unknown command"):
	case err != nil:
		return nil, err
	default:
		s.exact = true
	}
	return s, nil
}

// read reads the keys names in one transaction. If the primary is clustered, each key has its own
// transaction. read calls store for each key n, with the offset at of the primary's stream at which
// n was read. The function read that store gets passes the value to the store of s.values; found is
// false if the key does not exist.
func (s *second) read(names []name, store func(n name, at int64, read func() (found bool, err error)) error) error {
	if !s.clustered {
		err := s.transactions(names, len(names), store)
		var refused errReply
		if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "CROSSSLOT") {
			return err
		}
		s.clustered = true // the server has refused EXEC, so nothing was read
	}
	return s.transactions(names, 1, store)
}

// transactions reads the keys names in transactions of up to size keys, and calls store for each
// key.
func (s *second) transactions(names []name, size int, store func(n name, at int64, read func() (found bool, err error)) error) error {
	db := s.db
	var queued []int // number of commands of each transaction
	for part := range slices.Chunk(names, size) {
		var n int
		n, db = s.ask(part, db)
		queued = append(queued, n)
	}
	if err := s.send(); err != nil {
		return err
	}
	for part := range slices.Chunk(names, size) {
		if err := s.answers(part, queued[0], store); err != nil {
			return err
		}
		queued = queued[1:]
	}
	return nil
}

// answers reads the replies to one transaction, of queued commands, and calls store for each key in
// names.
func (s *second) answers(names []name, queued int, store func(n name, at int64, read func() (found bool, err error)) error) error {
	if err := s.status("OK"); err != nil {
		return err
	}
	var refused error
	for range queued {
		if err := s.status("QUEUED"); err != nil {
			refused = errors.Join(refused, err)
		}
	}
	n, err := s.array()
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return err
	case n != queued:
		return fmt.Errorf("%w: %d replies to %d commands", errStream, n, queued)
	}
	at, err := s.role()
	if err != nil {
		return err
	}
	var now int64
	if !s.exact {
		if now, err = s.time(); err != nil {
			return err
		}
	}
	return s.each(names, now, func(n name, read func() (bool, error)) error { return store(n, at, read) })
}

// ask appends a transaction that reads the keys names to the output. queued is the number of its
// commands. db is the database that is selected before the transaction, and now the database that
// is selected after it.
func (s *second) ask(names []name, db int) (queued, now int) {
	s.command("MULTI")
	s.command("ROLE")
	queued = 1 + 2*len(names)
	if !s.exact {
		s.command("TIME")
		queued++
	}
	for _, n := range names {
		if n.db != db {
			s.command("SELECT", strconv.Itoa(n.db))
			queued++
			db = n.db
		}
		s.command("DUMP", n.key)
		if s.exact {
			s.command("PEXPIRETIME", n.key)
		} else {
			s.command("PTTL", n.key)
		}
	}
	s.command("EXEC")
	return queued, db
}

// each reads the replies for the keys names, and calls store for each key. now is the primary's
// time in milliseconds, if it is needed. The expiry comes after the value, so the value is kept
// until the expiry has arrived.
func (s *second) each(names []name, now int64, store func(n name, read func() (bool, error)) error) error {
	for _, n := range names {
		if n.db != s.db {
			if err := s.status("OK"); err != nil {
				return err
			}
			s.db = n.db
		}
		found, err := s.bulk()
		if found {
			s.dumped += int64(len(s.dump))
		}
		var refused errReply
		if errors.As(err, &refused) {
			s.values.skipped.Add(unreadable, 1)
		} else if err != nil {
			return err
		}
		ms, err := s.integer()
		if err != nil {
			return err
		}
		if !s.exact && ms >= 0 {
			ms += now
		}
		if err := store(n, func() (bool, error) { return found, s.decode(n, found, ms) }); err != nil {
			return err
		}
		if cap(s.dump) > kept {
			s.dump = nil
		}
	}
	return nil
}

// decode passes the value in the last reply to DUMP, for the key n, to s.values. If found is false,
// there is no value, and decode does nothing. ms is the expiry in milliseconds of Unix time,
// negative if there is none. The last ten bytes of the reply are an RDB version and a checksum. The
// bytes before have the form that a value has in an RDB of this version.
func (s *second) decode(n name, found bool, ms int64) error {
	if !found {
		return nil
	}
	if len(s.dump) < 11 {
		return fmt.Errorf("%w: a value of %d bytes", errStream, len(s.dump))
	}
	body, version := s.dump[:len(s.dump)-10], binary.LittleEndian.Uint16(s.dump[len(s.dump)-10:])
	head := fmt.Appendf(nil, "REDIS%04d", version)
	if version >= 80 {
		head = fmt.Appendf(nil, "VALKEY%03d", version)
	}
	if ms > 0 {
		head = binary.LittleEndian.AppendUint64(append(head, 0xfc), uint64(ms))
	}
	head = append(head, body[0], 0x80) // the type of the value, and the prefix of a length of four bytes
	head = binary.BigEndian.AppendUint32(head, uint32(len(n.key)))
	head = append(head, n.key...)
	s.source.Reset(io.MultiReader(bytes.NewReader(head), bytes.NewReader(body[1:]), bytes.NewReader(end[:])))
	visitor := s.values.visitor()
	take := visitor.Value
	visitor.Value = func(key *rdb.Key, part rdb.Part) error {
		key.DB = n.db
		return take(key, part)
	}
	return rdb.NewReader(s.source, rdb.Limits{}).Read(visitor)
}

// end is the end of an RDB, with a checksum of zero, which means that there is none. The checksum
// of DUMP is not verified, because TCP has its own.
var end = [9]byte{0xff}

// role reads the reply to ROLE and returns the replication offset in it, or an error if it has
// none.
func (s *second) role() (offset int64, err error) {
	n, err := s.array()
	if err != nil {
		return 0, err
	}
	offset = -1
	for i := range n {
		number, is, err := s.skip(0)
		if err != nil {
			return 0, err
		}
		// The offset is at index 1 in the reply of a primary, and at index 4 in the reply of a
		// replica.
		if is && (i == 1 || i == 4) {
			offset = number
		}
	}
	if offset < 0 {
		return 0, fmt.Errorf("%w: ROLE has no offset", errStream)
	}
	return offset, nil
}

// time reads the reply to TIME and returns it in milliseconds.
func (s *second) time() (ms int64, err error) {
	if n, err := s.array(); err != nil || n != 2 {
		return 0, errors.Join(err, fmt.Errorf("%w: no time", errStream))
	}
	var parts [2]int64
	for i := range parts {
		if _, err := s.bulk(); err != nil {
			return 0, err
		}
		if parts[i], err = strconv.ParseInt(string(s.dump), 10, 64); err != nil {
			return 0, fmt.Errorf("%w: no time", errStream)
		}
	}
	return parts[0]*1000 + parts[1]/1000, nil
}
