package rdb

// Kind is the kind of a value. It does not depend on the encoding of the value.
type Kind uint8

// These are the kinds of values that are passed to a [Visitor].
const (
	String Kind = iota + 1
	List
	Set
	Hash
	SortedSet
)

// String returns the name of k, such as "sorted set".
func (k Kind) String() string {
	return [...]string{"none", "string", "list", "set", "hash", "sorted set"}[k]
}

// Key describes a key of the RDB. It is valid only during the call to which it is passed.
type Key struct {
	// DB is the number of the key's database.
	DB int
	// Name is the name of the key.
	Name []byte
	// Expire is the expiry of the key in milliseconds since 1970, or 0 if the key has none. The
	// expiry may have passed: a primary also sends expired keys that it has not deleted yet.
	Expire int64
	// Kind is the kind of the value; it is 0 for a skipped value that is not a collection. Type is
	// the byte for the encoding of the value.
	Kind Kind
	Type byte
}

// Element is one element of a list, set, hash or sorted set.
type Element struct {
	// Name is the element of a list, the member of a set or sorted set, or the field of a hash.
	// Value is the value of the field of a hash. Name and Value are valid only during the call of
	// the visitor.
	Name, Value []byte
	// Score is the score of the member of a sorted set. It is never NaN.
	Score float64
	// Expire is the expiry of the field of a hash in milliseconds since 1970, or 0 if the field has
	// none.
	Expire int64
}

// Part is a part of a value. A string comes in one part. A collection comes in parts of at
// most 512 elements, so that the reader need not hold a large collection in memory.
type Part struct {
	// Text is the whole value if it is a string. It is valid only during the call of the visitor.
	Text []byte
	// Elements has the next elements of a collection in the order of the RDB. The slice is valid
	// only during the call of the visitor. The reader does not check for duplicates in a set, hash
	// or sorted set.
	Elements []Element
	// First is true for the first part of a value, and Last for the last part. The last of several
	// parts may have no elements.
	First, Last bool
}

// Skipped describes data that a [Reader] has skipped.
type Skipped struct {
	// What is "stream", "module" with its name, "functions", "module data" with the name of the
	// module, "slot import", or "empty" with a kind.
	What string
	// Key is the key of a skipped value. It is nil for other data.
	Key *Key
}

// Visitor has the functions that a [Reader] calls. A nil function is not called. If a function
// returns an error, the reading ends, and [Reader.Read] returns the error wrapped.
type Visitor struct {
	// Aux gets each auxiliary field of the RDB, such as "redis-ver" or "repl-stream-db". name and
	// value are valid only during the call.
	Aux func(name, value []byte) error
	// Resize gets the number of keys of database db, and the number of those keys that have an
	// expiry. The numbers may be wrong, so no memory should be reserved for so many keys.
	Resize func(db int, keys, expires uint64) error
	// Value gets a part of the value of key. No other function is called between the first and the
	// last part of a value.
	Value func(key *Key, part Part) error
	// Skipped gets a description of each value that was skipped, and of other skipped data.
	Skipped func(Skipped) error
}
