package engine

import "time"

// TagLen is how many bytes a value begins with that differ in every write. They are what
// a swap compares.
const TagLen = 12

// Write is one compare-and-set. An empty Old stands for no key, an empty New deletes. Keep
// is how long the engine keeps the value: the expiry inside it is what decides.
type Write struct {
	Key, Old, New []byte
	Keep          time.Duration
}

// Found is a key that a scan has found, without the prefix, and its value.
type Found struct {
	Key, Value []byte
}
