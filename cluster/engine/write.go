package engine

import "time"

// TagLen is the number of bytes at the beginning of a value that differ in every write. A swap
// compares them.
const TagLen = 12

// Write is one compare-and-set. An empty Old stands for an absent key, and an empty New deletes the
// key. Keep is how long the engine keeps the value; the expiry inside the value decides.
type Write struct {
	Key, Old, New []byte
	Keep          time.Duration
}

// Found is a key found by a scan, without the prefix, and its value.
type Found struct {
	Key, Value []byte
}
