package stats

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// SeenKey is a key that limiters were called with often, or denied often, and what the last
// of its calls that was looked at was like.
type SeenKey struct {
	DB        int
	Key       string
	Count     int64   // halved every minute
	PerSecond float64 // over the last ten seconds
	Clients   []int64 // that were seen to call it, at most [MaxSeenClients], the newest last
	First     limit.Instant
	Last      limit.Instant
	SeenCall
}

// SeenCall is a call of a limiter. Args is what followed the key, at most [MaxSeenArgs]
// bytes, and the first Limit bytes of that say what the limit is.
type SeenCall struct {
	Command    string
	Args       string
	Limit      int
	RetryAfter time.Duration // of a call that was denied
}

// SeenKeys are keys, the ones that occur most now first, and how often all keys do.
type SeenKeys struct {
	Keys      []SeenKey
	PerSecond float64
}

// SeenGroup is what has been seen of a group of keys since it was last taken.
type SeenGroup struct {
	Name    string
	Denied  Sketch // of its keys
	Refused int64  // calls that lacked memory
	Calls   []SeenCalls
}

// SeenCalls is a kind of call and about how often it was seen.
type SeenCalls struct {
	SeenCall
	Count int64
}

const (
	// MaxSeenArgs is how much of the arguments of a call is kept.
	MaxSeenArgs = 48
	// MaxSeenClients is how many clients are kept for a key.
	MaxSeenClients = 8
)

// Names of groups that are no part of a key.
const (
	NoGroup     = "(none)" // of keys without the delimiter
	OtherGroups = "other"  // of what there was no room for
)

// maxGroupName is how long the name of a group may be; longer ones are among the others.
const maxGroupName = 64

// GroupOf returns the group of a key: what comes before the first delimiter, or fixed, which is
// [NoGroup] or [OtherGroups]; one of the two is empty. It allocates nothing.
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

// GroupName is GroupOf as a string.
func GroupName(key []byte, delimiter string) string {
	name, fixed := GroupOf(key, delimiter)
	return string(name) + fixed
}
