package rdb

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
)

// Limits has the limits for the data that a [Reader] accepts.
type Limits struct {
	// String is the maximum length of a string in bytes, both compressed and uncompressed; 0 means
	// 512 MiB. It also applies to packed encodings of collections, which Redis keeps much smaller.
	String int64
	// Elements is the maximum number of elements of a collection; 0 means 2^32.
	Elements int64
}

// Reader reads one RDB. Only one goroutine at a time may use it.
//
// A Reader holds one string at a time, and a part of a collection. Its memory grows with the bytes
// that have been read, never with a length that was only announced. It takes at most 1 MiB plus 64
// times the input. A compressed string takes its uncompressed size, which is at most 88 times its
// compressed size.
type Reader struct {
	values
	valkey  bool
	version int
	db      int // number of the database that is selected
	// current is the key that is being read, and expire is the expiry of the next key.
	current Key
	expire  int64
}

// NewReader returns a reader of the RDB in in. The reader consumes no byte beyond the end of the
// RDB, so that following data can be read from in afterwards.
func NewReader(in *bufio.Reader, limits Limits) *Reader {
	if limits.String <= 0 {
		limits.String = 512 << 20
	}
	if limits.Elements <= 0 {
		limits.Elements = 1 << 32
	}
	r := &Reader{}
	r.in = in
	r.longest = min(limits.String, math.MaxInt)
	r.most = uint64(limits.Elements)
	return r
}

// Version returns the version of the RDB. valkey reports whether it is a version of Valkey's own.
// Both are known when the first function of the visitor is called.
func (r *Reader) Version() (version int, valkey bool) { return r.version, r.valkey }

// Offset returns the number of bytes of the RDB that have been read.
func (r *Reader) Offset() int64 { return r.offset() }

// Read reads the whole RDB and passes its content to visitor. It returns nil only if the RDB was
// read to its end and the checksum is right. A checksum of 0 counts as right: a server that does
// not compute checksums writes it. After an error the caller must discard all values that visitor
// has received. Read may be called only once.
func (r *Reader) Read(visitor *Visitor) error {
	r.visitor = visitor
	err := r.all()
	r.settle()
	if err != nil {
		return fmt.Errorf("RDB at byte %d: %w", r.before, err)
	}
	return nil
}

// all reads the whole RDB. Its errors do not have the offset.
func (r *Reader) all() error {
	if err := r.header(); err != nil {
		return err
	}
	for {
		code, err := r.byte()
		if err != nil {
			return err
		}
		if code == opEnd {
			return r.checksum()
		}
		if code >= opSlotImportOrMeta {
			err = r.opcode(code)
		} else {
			err = r.keyValue(code)
		}
		if err != nil {
			return err
		}
	}
}

// header reads the first bytes and determines the version. For an unknown version or another format
// the error is ErrVersion.
func (r *Reader) header() error {
	head, err := r.read(nil, headerSize)
	if err != nil {
		return err
	}
	name, digits := head[:5], head[5:]
	if string(head[:6]) == "VALKEY" {
		r.valkey, name, digits = true, head[:6], head[6:]
	}
	version, err := strconv.ParseUint(string(digits), 10, 16)
	known := version >= oldest && version <= newest
	if r.valkey {
		known = version == valkeyVersion
	}
	if err != nil || !r.valkey && string(name) != "REDIS" {
		return fmt.Errorf("%w: %q is not the beginning of an RDB", ErrVersion, head)
	}
	if !known {
		return fmt.Errorf("%w: %s %d", ErrVersion, name, version)
	}
	r.version = int(version)
	return nil
}

// checksum reads the checksum at the end and compares it with the checksum of the bytes that were
// read. A difference is an error that wraps ErrChecksum. A checksum of 0 means that the RDB has
// none.
func (r *Reader) checksum() error {
	r.settle()
	want := r.sum
	sum, err := r.number(8)
	if err == nil && sum != 0 && sum != want {
		err = fmt.Errorf("%w: %016x instead of %016x", ErrChecksum, sum, want)
	}
	return err
}

// opcode reads the data that follows the opcode code. An unknown opcode is an error.
func (r *Reader) opcode(code byte) error {
	switch code {
	case opAux:
		return r.aux()
	case opSelectDB:
		db, err := r.count()
		if err == nil && db > math.MaxInt32 {
			err = corrupt("database %d", db)
		}
		r.db = int(db)
		return err
	case opResize:
		return r.resize()
	case opExpire:
		seconds, err := r.number(4)
		r.expire = instant(uint64(int64(int32(seconds)) * 1000))
		return err
	case opExpireMS:
		ms, err := r.number(8)
		r.expire = instant(ms)
		return err
	case opFreq:
		return r.skip(1)
	case opIdle:
		return r.counts(1)
	case opSlotInfo: // the slot, the number of its keys, and the number of those that expire
		return r.counts(3)
	case opFunction:
		if err := r.skipText(); err != nil {
			return err
		}
		return r.visitor.skipped("functions", nil)
	case opModuleAux:
		return r.moduleAux()
	case opSlotImportOrMeta:
		if r.valkey {
			return r.slotImport()
		}
		return r.keyMetadata()
	}
	return fmt.Errorf("%w opcode %d", ErrUnknown, code)
}

// aux reads an auxiliary field and passes it to the visitor.
func (r *Reader) aux() (err error) {
	if r.name, err = r.text(r.name[:0]); err != nil {
		return err
	}
	if r.blob, err = r.text(r.blob[:0]); err != nil {
		return err
	}
	if r.visitor.Aux != nil {
		err = r.visitor.Aux(r.name, r.blob)
	}
	r.name, r.blob = reusable(r.name), reusable(r.blob)
	return err
}

// resize reads the numbers of keys of the database and passes them to the visitor.
func (r *Reader) resize() error {
	keys, err := r.count()
	if err != nil {
		return err
	}
	expires, err := r.count()
	if err == nil && r.visitor.Resize != nil {
		err = r.visitor.Resize(r.db, keys, expires)
	}
	return err
}

// keyValue reads a key and its value, whose type is code. It skips a stream and a value of a
// module. An unknown type is an error.
func (r *Reader) keyValue(code byte) (err error) {
	e, collected := encoding{}, false
	if !known(code, r.valkey) {
		if e, collected = encodingOf(code, r.valkey); !collected {
			return fmt.Errorf("%w type %d of a value", ErrUnknown, code)
		}
	}
	if r.name, err = r.text(r.name[:0]); err != nil {
		return err
	}
	r.current = Key{DB: r.db, Name: r.name, Expire: r.expire, Type: code}
	r.expire = 0
	switch {
	case code == typeString:
		err = r.string(&r.current)
	case collected:
		err = r.collection(e, &r.current)
	default:
		err = r.passOver(&r.current)
	}
	r.name = reusable(r.name)
	return err
}

// known reports whether code is the type of values that are not collections and that can be read or
// skipped.
func known(code byte, valkey bool) bool {
	switch code {
	case typeString, typeModule, typeStream, typeStream2, typeStream3:
		return true
	}
	return code == typeStream4 && !valkey
}

// passOver skips the value of key, a stream or a value of a module, and notifies the visitor.
func (r *Reader) passOver(key *Key) (err error) {
	what := "stream"
	switch key.Type {
	case typeStream:
		err = r.stream(1)
	case typeStream2:
		err = r.stream(2)
	case typeStream3:
		err = r.stream(3)
	case typeStream4:
		err = r.stream(4)
	case typeModule:
		if what, err = r.moduleName(); err == nil {
			what = "module " + what
			err = r.module()
		}
	}
	if err != nil {
		return err
	}
	return r.visitor.skipped(what, key)
}
