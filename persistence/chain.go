package persistence

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// increment describes an increment on disk as [inspect] has found it.
type increment struct {
	part
	path  string
	size  int64  // length of the file in bytes
	valid int64  // offset in bytes after the last valid record
	seq   uint64 // number of the record at the offset valid, counted from 1
	// sealed is true if the file has an end record. ended is true if there is an end record and
	// only durable-offset or end records follow it, so that nothing is missing.
	sealed  bool
	ended   bool
	records int           // number of records of effects
	durable bool          // whether the file has a durable-offset or end record, so that all increments before it were durable
	damage  *damage       // the first invalid record; nil if all are valid
	clock   clock.Record  // the last clock record, or the one in the header if there is no other
	latest  limit.Instant // an instant that is not earlier than any effect in the file
	origin  *Origin       // the last origin record; nil if there is none or effects follow it
}

// inspect reads the increment p in directory dir from beginning to end. Damage of a record is not
// an error but noted in the result. The error says that the file cannot be opened or read, that the
// header is wrong, or that a record is invalid although its checksum is right.
func inspect(fsys FS, dir string, p part) (*increment, error) {
	in := &increment{part: p, path: filepath.Join(dir, p.name)}
	f, err := fsys.Open(in.path)
	if err != nil {
		return nil, fmt.Errorf("opening a file that the manifest lists: %w", err)
	}
	defer f.Close()
	if in.size, err = f.Size(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", in.path, err)
	}
	h, err := readHeader(f, in.path, incrementMagic, p.id)
	if err != nil {
		return nil, err
	}
	in.clock, in.latest = h.clock, h.clock.Derived
	return in, in.scan(f)
}

// scan reads all records of f, the file of in, and fills in the fields of in that describe them. It
// stops at damage, which it stores in in.damage. The error says that a read failed, or that a
// record with a valid checksum is invalid.
func (in *increment) scan(f File) error {
	s := newScanner(f, in.size, in.id)
	for {
		payload, err := s.next()
		var d *damage
		switch {
		case errors.Is(err, io.EOF):
		case errors.As(err, &d) && d.err != nil:
			return fmt.Errorf("reading %s: %w", in.path, d.err)
		case errors.As(err, &d):
			in.damage = d
		case in.ended && !isDurableRecord(payload):
			in.damage = &damage{offset: in.valid, record: in.seq, what: "there is something behind the end record"}
			in.ended = false
		default:
			if why := in.note(payload); why != "" {
				// The checksum is right, so these bytes were written, and a crash is not the
				// reason.
				return spoiled(in.path, in.valid, in.seq, why)
			}
			in.valid, in.seq = s.off, s.f.seq
			continue
		}
		in.valid, in.seq = max(in.valid, headerSize), max(in.seq, 1)
		return nil
	}
}

// isDurableRecord reports whether payload is a durable-offset record or an end record. Such a
// record may follow the end record, because an older version of the server wrote one when it
// stopped.
func isDurableRecord(payload []byte) bool {
	return recordType(payload[0]) == typeDurable || recordType(payload[0]) == typeEnd
}

// note updates the fields of in by the record with that payload. If the record is invalid, note
// returns the reason, otherwise "".
func (in *increment) note(payload []byte) string {
	switch recordType(payload[0]) {
	case typeEffects:
		in.records++
		in.origin = nil
		in.latest = max(in.latest, in.clock.Derived.Add(clockReach))
	case typeClock:
		if len(payload) != 1+clockSize {
			return "a clock record of another length"
		}
		in.clock = parseClock(payload[1:])
		in.latest = max(in.latest, in.clock.Derived)
	case typeDurable, typeEnd:
		if _, ok := durableOffset(payload, in.id); !ok {
			return "a durable-offset record of another file"
		}
		in.durable = true
		in.ended = in.ended || recordType(payload[0]) == typeEnd
		in.sealed = in.ended
	case typeOrigin:
		o, err := parseOrigin(payload[1:])
		if err != nil {
			return err.Error()
		}
		in.origin = o
	default:
		if payload[0] < LeastPassedOver {
			return fmt.Sprintf("a record of type %d is not known to this program", payload[0])
		}
	}
	return ""
}

// Torn describes the incomplete end of a log that a crash has left. A server cuts it off when it
// starts.
type Torn struct {
	File   string // path of the increment whose end is cut off
	Offset int64  // offset in bytes at which the first invalid record begins
	Record uint64 // number of that record in the file, counted from 1
	// Dropped is the number of bytes that are cut off, including the bytes of later files.
	Dropped int64
	What    string // a text that says what is wrong with the record
}

// String describes the torn end in one line, for logs.
func (t *Torn) String() string {
	return fmt.Sprintf("%s: offset %d, record %d: %s; %d bytes that were not known to be durable are cut off", t.File, t.Offset, t.Record, t.What, t.Dropped)
}

// judge decides whether the increments ins, which are in order, are intact, torn or corrupt. For
// intact increments it returns nil and no error. For torn increments it returns the end that has to
// be cut off. Increments are torn if a record is invalid or missing and no record says that data at
// or after that place was durable: a crash may have left them. Otherwise the error is a
// *[CorruptError], or says that a read failed.
func judge(fsys FS, ins []*increment) (*Torn, error) {
	for i, in := range ins {
		if in.ended || in.damage == nil && !anyRecords(ins[i+1:]) {
			continue
		}
		d := in.damage
		if d == nil {
			d = &damage{offset: in.valid, record: in.seq, what: "the file stops without an end record although a later one goes on"}
		}
		if err := contradicted(fsys, in, d, ins[i+1:]); err != nil {
			return nil, err
		}
		t := &Torn{File: in.path, Offset: d.offset, Record: d.record, What: d.what, Dropped: in.size - in.valid}
		for _, later := range ins[i+1:] {
			t.Dropped += later.size
		}
		return t, nil
	}
	return nil, nil
}

// anyRecords reports whether one of the increments has bytes after its header.
func anyRecords(ins []*increment) bool {
	for _, in := range ins {
		if in.size > headerSize {
			return true
		}
	}
	return false
}

// contradicted returns a *[CorruptError] if a durable-offset record of in, or of one of the later
// increments, says that the place of the damage d was durable. Another error says that a read
// failed.
func contradicted(fsys FS, in *increment, d *damage, later []*increment) error {
	for _, l := range later {
		if l.durable {
			return corrupt(in.path, d.offset, d.record, d.what+", and "+l.name+" says that all of this file was durable")
		}
	}
	f, err := fsys.Open(in.path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", in.path, err)
	}
	defer f.Close()
	offset, found, err := durableRecordAfter(f, in.size, in.id, d.offset)
	if err != nil {
		return fmt.Errorf("reading %s: %w", in.path, err)
	}
	if found {
		return corrupt(in.path, d.offset, d.record, fmt.Sprintf("%s, although everything before offset %d was durable", d.what, offset))
	}
	return nil
}
