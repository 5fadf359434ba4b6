package env

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Keys has the methods for keys of any type. Each method that has a parameter db acts on that
// database. found, exists and a result of type bool that has no name say whether the key exists,
// unless a comment says otherwise.
type Keys interface {
	Delete(db int, key []byte) bool
	Exists(db int, key []byte) bool
	// TypeName returns the type of key as the reply of TYPE, "none" for a missing key.
	TypeName(db int, key []byte) string
	// Expiry returns in at the instant of the expiry of key. has is false for a key without an
	// expiry.
	Expiry(db int, key []byte) (at limit.Instant, has, exists bool)
	// Expire sets the expiry of key to at if cond permits it, and reports whether it did. If at is
	// in the past, the key is deleted.
	Expire(db int, key []byte, at limit.Instant, cond decide.ExpireCondition) bool
	// Persist removes the expiry of key, and reports whether the key had one.
	Persist(db int, key []byte) bool
	// Rename moves the value at from to the key to. If nx is set and the key to exists, nothing
	// changes and renamed is false. found says whether from exists.
	Rename(db int, from, to []byte, nx bool) (renamed, found bool)
	// Prefetch may load the values of keys of the database db into the processor's cache, because
	// commands are about to use them. It changes nothing.
	Prefetch(db int, keys [][]byte)
}

// Databases has the methods for all keys of a database, and of all databases.
type Databases interface {
	// RandomKey appends a random key of the database to dst and returns the extended buffer. The
	// result of type bool is false if the database is empty.
	RandomKey(dst []byte, db int) ([]byte, bool)
	// Scan calls f for the keys of one step of an iteration, and returns the cursor of the next
	// step, 0 at the end. A step examines about count entries. The iteration begins at the cursor
	// 0. Every key that exists during the whole iteration is passed to f at least once. f must not
	// use the store, and key is valid only during the call.
	Scan(db int, cursor uint64, count int, f func(key []byte, typeName string)) (next uint64)
	Len(db int) int
	Flush(db int)
	FlushAll()
}

// Inspector describes how keys are stored. found and the results of type bool say whether the key
// exists.
type Inspector interface {
	// Encoding returns the reply of OBJECT ENCODING.
	Encoding(db int, key []byte) (string, bool)
	// Weigh returns the number of elements of the collection at key, and the number of bytes that a
	// reply with all of them copies. For a string, elements is 0, and copied is the number of bytes
	// that a reply with the string copies. Both are 0 for a small collection, in which elements are
	// found quickly, for any other type, and for a missing key.
	Weigh(db int, key []byte) (elements, copied int)
	// MemoryUsage returns the memory of key in bytes.
	MemoryUsage(db int, key []byte) (int64, bool)
	// Describe calls f for each field that RL.INFO shows of key: with number, or with text if
	// isText is set. by supplies the parameters that the state does not contain. It is nil, a
	// *gcra.Quota, or a pointer to the call of another family, of which the limit or the capacity
	// is used.
	Describe(db int, key []byte, by any, f func(field, text string, number int64, isText bool)) (found bool, err error)
}

// Memory says whether the memory of the keys is used up.
type Memory interface {
	// Full reports whether memory is at maxmemory, so that new keys are refused.
	Full() bool
	// Lacks reports whether n more bytes would bring memory to maxmemory.
	Lacks(n int64) bool
}
