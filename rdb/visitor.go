package rdb

// Kind is the kind of a value, independent of its encoding.
type Kind uint8

// The kinds of values that are passed to a [Visitor].
const (
	String Kind = iota + 1
	List
	Set
	Hash
	SortedSet
)

func (k Kind) String() string {
	return [...]string{"none", "string", "list", "set", "hash", "sorted set"}[k]
}

// Key describes the key of a value.
type Key struct {
	// DB is the number of the database.
	DB int
	// Name is valid during the call.
	Name []byte
	// Expire is the expiry of the key, in milliseconds since 1970, or 0 for none. It may have
	// passed: a primary also sends expired keys that it has not deleted yet.
	Expire int64
	// Kind is the kind of the value, and Type the byte for its encoding.
	Kind Kind
	Type byte
}

// Element is one element of a list, set, hash or sorted set.
type Element struct {
	// Name is the element of a list, the member of a set or sorted set, or the field of a
	// hash. Value is the value of that field. Both are valid during the call.
	Name, Value []byte
	// Score is the score of a member of a sorted set. It is never NaN.
	Score float64
	// Expire is the expiry of a field of a hash, in milliseconds since 1970, or 0 for none.
	Expire int64
}

// Part is a part of a value. A string is one part; other values come in parts of some hundred
// elements, so that the reader never holds a whole collection.
type Part struct {
	// Text is the whole string, valid during the call.
	Text []byte
	// Elements are the next elements, in the order of the file, valid during the call. The reader
	// does not check for duplicates in a set, hash or sorted set.
	Elements []Element
	// First and Last mark the first and the last part of a value. The last of several parts may
	// have no elements.
	First, Last bool
}

// Skipped describes data that a reader skips.
type Skipped struct {
	// What is "stream", "module" with its name, "functions", "module data" with the name of the
	// module, "slot import", or "empty" with a kind.
	What string
	// Key is the key of a skipped value, nil for other data. It is valid during the call.
	Key *Key
}

// Visitor has the functions that a [Reader] calls. A nil function is not called. An error ends the
// reading, and Read returns it wrapped.
type Visitor struct {
	// Aux gets the fields at the beginning, such as "redis-ver" and "repl-stream-db". Both
	// are valid during the call.
	Aux func(name, value []byte) error
	// Resize gets the number of keys of database db, and of those that expire. The numbers are not
	// verified: no memory should be reserved for them.
	Resize func(db int, keys, expires uint64) error
	// Value gets a part of a value. No other function is called between the first and the last part
	// of a value.
	Value func(key *Key, part Part) error
	// Skipped gets a description of skipped data.
	Skipped func(Skipped) error
}
