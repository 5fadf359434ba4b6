package stats

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// SeenKey is one of the keys with most limiter calls or with most denied calls. The embedded
// SeenCall is the latest of these calls whose details were kept.
type SeenKey struct {
	DB        int
	Key       string
	Count     int64   // approximate number of calls; halved every minute
	PerSecond float64 // number of calls per second over the last ten seconds
	Clients   []int64 // IDs of clients that have called the key, at most [MaxSeenClients], the newest last
	First     limit.Instant
	Last      limit.Instant
	SeenCall
}

// SeenCall is a call of a limiter. Args are its arguments after the key, at most [MaxSeenArgs]
// bytes. The first Limit bytes of Args define the limit.
type SeenCall struct {
	Command    string
	Args       string
	Limit      int
	RetryAfter time.Duration // time after which a denied call may be repeated
}

// SeenKeys has the most frequent keys in descending order of their rates, and the rate of all keys
// together in calls per second.
type SeenKeys struct {
	Keys      []SeenKey
	PerSecond float64
}

// SeenGroup has the records about a group of keys since the previous time that these records were
// read.
type SeenGroup struct {
	Name    string
	Denied  Sketch // sketch of the distinct keys that were denied
	Refused int64  // number of calls that were refused for lack of memory
	Calls   []SeenCalls
}

// SeenCalls is a kind of call. Count is about the number of these calls.
type SeenCalls struct {
	SeenCall
	Count int64
}

const (
	// MaxSeenArgs is the maximum number of bytes of a call's arguments that are kept.
	MaxSeenArgs = 48
	// MaxSeenClients is the maximum number of clients that are kept for a key.
	MaxSeenClients = 8
)

// These are the names of the fixed groups.
const (
	NoGroup     = "(none)" // name of the group of the keys without the delimiter
	OtherGroups = "other"  // name for all groups that are not counted by name
)

// maxGroupName is the maximum length of the name of a group in bytes. Groups with longer names are
// counted with the others.
const maxGroupName = 64

// GroupOf returns the group of key. That is either name, the part of key before the first
// delimiter, or fixed, which is [NoGroup] or [OtherGroups]; the other result is empty. name refers
// to key. GroupOf does not allocate.
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

// GroupName returns the name of the group of key: the result of [GroupOf] as a string.
func GroupName(key []byte, delimiter string) string {
	name, fixed := GroupOf(key, delimiter)
	return string(name) + fixed
}
