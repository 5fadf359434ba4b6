package rdb

// Kind is what a value is to its users, whatever its encoding.
type Kind uint8

// The kinds of values that are handed over.
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

// Key is where a value belongs.
type Key struct {
	// DB is the number of the database.
	DB int
	// Name is valid during the call.
	Name []byte
	// Expire is when the key expires, in milliseconds since 1970, or 0 for never. It may
	// have passed: a primary sends what it has not yet deleted.
	Expire int64
	// Kind is the kind of the value, and Type the byte that says its encoding.
	Kind Kind
	Type byte
}

// Element is one of a list, set, hash or sorted set.
type Element struct {
	// Name is the element of a list, the member of a set or sorted set, or the field of a
	// hash. Value is the value of that field. Both are valid during the call.
	Name, Value []byte
	// Score is that of a member of a sorted set. It is never NaN.
	Score float64
	// Expire is when the field of a hash expires, in milliseconds since 1970, or 0 for never.
	Expire int64
}

// Part is a part of a value. A string is one part, others come in parts of some hundred
// elements, so that the reader never holds a whole collection.
type Part struct {
	// Text is the whole string, valid during the call.
	Text []byte
	// Elements are the next elements, in the order of the file, valid during the call. The
	// reader does not look whether two of a set, hash or sorted set are equal.
	Elements []Element
	// First and Last say that no part was before, and that none follows. The last of several
	// may have no elements.
	First, Last bool
}

// Skipped is what a reader passes over.
type Skipped struct {
	// What is "stream", "module" and its name, "functions", "module data" and the name of the
	// module, "slot import", or "empty" and a kind.
	What string
	// Key is whose value it was, nil if it was no value. It is valid during the call.
	Key *Key
}

// Visitor has the functions that a [Reader] calls. Those that are nil are not called. An
// error ends the reading, and is wrapped in what Read returns.
type Visitor struct {
	// Aux gets the fields at the beginning, such as "redis-ver" and "repl-stream-db". Both
	// are valid during the call.
	Aux func(name, value []byte) error
	// Resize gets how many keys database db has, and how many of them expire. Nobody has
	// checked these figures: no memory should be reserved for them.
	Resize func(db int, keys, expires uint64) error
	// Value gets a part of a value. Between the first and the last part of a value no other
	// function is called.
	Value func(key *Key, part Part) error
	// Skipped gets what was passed over.
	Skipped func(Skipped) error
}
