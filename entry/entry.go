package entry

import (
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// NoExpiry is the expiry of a key that never expires. It is the last representable instant, so that
// "exists while expiry > now" needs no special case.
const NoExpiry = limit.MaxInstant

// Entry is what a key holds. The Kind of an absent key is [None].
type Entry struct {
	Kind Kind
	// Made says that shared.New has made Value. A table that gets the entry may then keep Value
	// without a copy.
	Made   bool
	Expiry limit.Instant
	Value  []byte
}

// SystemDatabase is the number of the database for the server's own records, such as policies. The
// databases of clients have lower numbers.
const SystemDatabase = 16

// MaxKeyLength is the longest possible key in bytes. Tables depend on it.
const MaxKeyLength = 1<<15 - 1

// Long reports whether e is a string so long that replies and records refer to its value instead of
// copying it. The stored value is then one that [shared.New] has made.
func (e *Entry) Long() bool { return e.Kind == String && len(e.Value) >= shared.Least }
