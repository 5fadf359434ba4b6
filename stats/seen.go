package stats

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// SeenKey is a key with frequent, or frequently denied, limiter calls, and the last of its calls
// that was examined.
type SeenKey struct {
	DB        int
	Key       string
	Count     int64   // halved every minute
	PerSecond float64 // over the last ten seconds
	Clients   []int64 // clients that have called it, at most [MaxSeenClients], the newest last
	First     limit.Instant
	Last      limit.Instant
	SeenCall
}

// SeenCall is a call of a limiter. Args are the arguments after the key, at most [MaxSeenArgs]
// bytes. Their first Limit bytes define the limit.
type SeenCall struct {
	Command    string
	Args       string
	Limit      int
	RetryAfter time.Duration // of a denied call
}

// SeenKeys are the most frequent keys, in descending order, and the rate of all keys together.
type SeenKeys struct {
	Keys      []SeenKey
	PerSecond float64
}

// SeenGroup is what was seen of a group of keys since it was last taken.
type SeenGroup struct {
	Name    string
	Denied  Sketch // of its keys
	Refused int64  // calls refused for lack of memory
	Calls   []SeenCalls
}

// SeenCalls is a kind of call and about how often it occurred.
type SeenCalls struct {
	SeenCall
	Count int64
}

const (
	// MaxSeenArgs bounds the bytes of a call's arguments that are kept.
	MaxSeenArgs = 48
	// MaxSeenClients bounds the clients that are kept for a key.
	MaxSeenClients = 8
)

// Names of the fixed groups.
const (
	NoGroup     = "(none)" // keys without the delimiter
	OtherGroups = "other"  // everything without room
)

// maxGroupName bounds the bytes of a group's name; groups with longer names are counted with the
// others.
const maxGroupName = 64

// GroupOf returns the group of a key: either the name before the first delimiter, or fixed, which
// is [NoGroup] or [OtherGroups]. The other result is empty. It does not allocate.
func GroupOf(key []byte, delimiter string) (name []byte, fixed string) {
	at := -1
	if len(delimiter) == 1 {
		at = bytes.IndexByte(key, delimiter[0])
	} else if delimiter != "" {
		at = bytes.Index(key, []byte(delimiter))
	}
	switch {
	case at < 0:
		return nil, NoGroup
	case at > maxGroupName:
		return nil, OtherGroups
	}
	return key[:at], ""
}

// GroupName returns the result of GroupOf as a string.
func GroupName(key []byte, delimiter string) string {
	name, fixed := GroupOf(key, delimiter)
	return string(name) + fixed
}
