package idempotency

import (
	"encoding/binary"
	"time"

	"github.com/dchest/siphash"

	"github.com/cellserver/cellserver/limit"
)

// These are the bounds of the parameters of a call.
const (
	// MaxToken is the maximum length of a token in bytes; the minimum is 1.
	MaxToken = 64
	// MaxCalls is the maximum of [Call.Max].
	MaxCalls = 1_000_000
)

// Call identifies one charging call of a client. The zero value identifies none.
type Call struct {
	// Token is the name that the client gives to the call, of 1 to [MaxToken] bytes, or nil.
	Token []byte
	// Print is a fingerprint of the arguments of the call. A call with the same token and another
	// fingerprint is not a repetition but a mistake of the client.
	Print uint32
	// TTL is the time for which the call is remembered. It must be positive.
	TTL time.Duration
	// Max is the maximum number of calls that a key remembers, from 1 to [MaxCalls]. If there would
	// be more, the oldest ones are forgotten.
	Max uint32
	// Seed is the key of the hash for a value that has no record yet. It should be random, so that
	// clients cannot choose tokens with equal hashes.
	Seed uint64

	// hashed caches the hash of the token, if hashes is true; by is its seed. Because of the cache,
	// each token needs a new Call.
	hashed Hash
	by     uint64
	hashes bool
}

// Record has the data of a remembered call from which a repetition of the call is answered.
type Record struct {
	Print uint32 // fingerprint of the arguments of the call
	// Missing is the number of units that the call requested and was not granted.
	Missing int64
	// Ready is the instant at which the caller may use its units, or [limit.MinInstant] if it may use
	// them at once.
	Ready limit.Instant
	// Until is the instant from which the call is forgotten.
	Until limit.Instant
	// State says whether the call was a reservation, and how the reservation has ended. Variant is
	// a flag of the reservation that package reservation defines.
	State   State
	Variant bool
}

// State is the state of a remembered call. The numbers are stored and never change their meaning.
type State uint8

// These are the states.
const (
	Charged   State = 0 // the call was not a reservation
	Committed State = 1 // the call was a reservation that was settled
	Cancelled State = 2 // the call was a reservation whose units were given back
	Lapsed    State = 3 // the call was a reservation that has passed its time
)

// Added is a record together with the hash of its token.
type Added struct {
	Hash   Hash
	Record Record
}

// Print computes a fingerprint of the arguments of a call. The zero value stands for no arguments.
// Fingerprints are stored, so the function never changes.
type Print uint64

// Int adds n to the fingerprint.
func (p *Print) Int(n int64) {
	h := (uint64(*p) ^ uint64(n)) * 0x9e3779b97f4a7c15
	*p = Print(h ^ h>>29)
}

// Bytes adds b, and its length, to the fingerprint.
func (p *Print) Bytes(b []byte) {
	p.Int(int64(len(b)))
	p.Int(int64(siphash.Hash(0, 0, b)))
}

// Sum returns the fingerprint of the arguments that were added.
func (p Print) Sum() uint32 { return uint32(p>>32) ^ uint32(p) }

// Hash is the hash of a token, of 120 bits.
type Hash struct{ lo, hi uint64 }

// hashKey is the second half of the key of the hash. The first half is the seed of the value.
const hashKey = 0x63656c6c73657276

// Hash returns the hash of the token for a value with the given seed.
func (c *Call) Hash(seed uint64) Hash {
	if !c.hashes || c.by != seed {
		lo, hi := siphash.Hash128(seed, hashKey, c.Token)
		c.hashed, c.by, c.hashes = Hash{lo, hi & (1<<hashBits - 1)}, seed, true
	}
	return c.hashed
}

// A record is stored as
//
//	15 bytes  hash of the token
//	 1 byte   flags
//	 8 bytes  the instant until which the call is remembered
//	 4 bytes  fingerprint
//
// and, if flagMore is set, followed by another slot with
//
//	 8 bytes  missing units
//	 8 bytes  the instant at which the units may be used
//	12 bytes  zero
//
// All numbers are little-endian.
const (
	recordSize = 28
	hashBits   = 56 // number of bits that are stored of the second half of the hash
)

// These are the flags of a record. The state takes two bits.
const (
	flagMore    = 1
	stateShift  = 1
	flagVariant = 8
	allFlags    = flagMore | 3<<stateShift | flagVariant
)

func (h Hash) is(slot []byte) bool {
	return HashIn(slot) == h
}

// Append appends the 15 bytes of h and a byte of flags to dst. [HashIn] reads the hash.
func (h Hash) Append(dst []byte, flags byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, h.lo)
	return binary.LittleEndian.AppendUint64(dst, h.hi|uint64(flags)<<hashBits)
}

// HashIn returns the hash with which slot begins. It ignores the byte after the 15 bytes of the
// hash.
func HashIn(slot []byte) Hash {
	return Hash{binary.LittleEndian.Uint64(slot), binary.LittleEndian.Uint64(slot[8:]) & (1<<hashBits - 1)}
}

// home returns the position in an index of the given size, a power of two, at which the search for
// the record in slot begins.
func home(slot []byte, size int) int { return int(binary.LittleEndian.Uint64(slot) & uint64(size-1)) }

func flags(slot []byte) byte { return slot[15] }

// width returns the number of slots that the record in slot takes.
func width(slot []byte) uint32 {
	if flags(slot)&flagMore != 0 {
		return 2
	}
	return 1
}

func until(slot []byte) limit.Instant {
	return limit.Instant(binary.LittleEndian.Uint64(slot[16:]))
}

// more reports whether r takes two slots.
func (r *Record) more() bool { return r.Missing != 0 || r.Ready != limit.MinInstant }

// append appends the stored form of the record r of a token with the hash h to dst.
func (r *Record) append(dst []byte, h Hash) []byte {
	flags := byte(r.State) << stateShift
	if r.more() {
		flags |= flagMore
	}
	if r.Variant {
		flags |= flagVariant
	}
	dst = h.Append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Until))
	dst = binary.LittleEndian.AppendUint32(dst, r.Print)
	if r.more() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Missing))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Ready))
		dst = append(dst, make([]byte, recordSize-16)...)
	}
	return dst
}

// read returns the record in slot, whose second slot is more if it has one.
func read(slot, more []byte) Record {
	r := Record{Print: binary.LittleEndian.Uint32(slot[24:]), Ready: limit.MinInstant, Until: until(slot)}
	r.State, r.Variant = State(flags(slot)>>stateShift&3), flags(slot)&flagVariant != 0
	if flags(slot)&flagMore != 0 {
		r.Missing = int64(binary.LittleEndian.Uint64(more))
		r.Ready = limit.Instant(binary.LittleEndian.Uint64(more[8:]))
	}
	return r
}
