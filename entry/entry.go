package entry

import (
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/shared"
)

// NoExpiry is the expiry of a key that never expires. It is the last representable instant, so that
// the rule "a key exists while its expiry is later than now" needs no special case.
const NoExpiry = limit.MaxInstant

// Entry is the content of a key. An Entry of kind [None] stands for an absent key.
type Entry struct {
	Kind Kind
	// Made is true if [shared.New] has made Value. A table that gets the entry may then keep Value
	// without a copy.
	Made   bool
	Expiry limit.Instant // the instant at which the key expires, or NoExpiry
	Value  []byte        // the bytes that hold the content; their meaning depends on Kind
}

// SystemDatabase is the number of the database for the server's own data, such as policies. The
// databases for clients have lower numbers.
const SystemDatabase = 16

// MaxKeyLength is the maximum length of a key in bytes. The header of a table's record has 15 bits
// for it.
const MaxKeyLength = 1<<15 - 1

// Long reports whether e is a string of [shared.Least] bytes or more. Replies and records refer to
// the stored value of such a string instead of copying it; [shared.New] has made that value.
func (e *Entry) Long() bool { return e.Kind == String && len(e.Value) >= shared.Least }

// Plain returns e without the calls that it remembers, and their records; nil if it remembers none.
// The results refer to the value of e.
func Plain(e *Entry) (plain Entry, records []byte) {
	plain, records, _ = Parts(e)
	return plain, records
}

// Parts is [Plain], and also returns the section of package reservation; nil if e has none.
func Parts(e *Entry) (plain Entry, records, reservations []byte) {
	plain = *e
	if !e.Kind.Remembers() {
		return plain, nil, nil
	}
	plain.Kind = e.Kind.Plain()
	remembers := true
	if reservation.Marked(e.Value) {
		plain.Value, reservations, remembers = reservation.Split(e.Value)
	}
	if remembers {
		plain.Value, records = idempotency.Split(plain.Value)
	}
	return plain, records, reservations
}
