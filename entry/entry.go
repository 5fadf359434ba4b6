package entry

import (
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// NoExpiry is the expiry of a key that lives until it is deleted. It is the last
// instant there is, so that "exists while expiry > now" needs no special case.
const NoExpiry = limit.MaxInstant

// Entry is what a key holds. The Kind of an absent key is [None].
type Entry struct {
	Kind Kind
	// Made says that Value was made by shared.New for a table that is given the entry,
	// which may keep it and need not copy.
	Made   bool
	Expiry limit.Instant
	Value  []byte
}

// SystemDatabase is the number of the database of what the server keeps for itself, such as
// policies. Those of clients have lower numbers.
const SystemDatabase = 16

// MaxKeyLength is the longest key there can be, which tables rely on.
const MaxKeyLength = 1<<15 - 1

// Long reports whether e is a string so long that replies and records refer to its value
// instead of copying it. What is stored of it is then a value that [shared.New] has made.
func (e *Entry) Long() bool { return e.Kind == String && len(e.Value) >= shared.Least }
