package engine

import "time"

// TagLen is the number of bytes at the beginning of a value that a swap compares. These bytes
// differ in every write.
const TagLen = 12

// Write is one compare-and-set. Key is without the prefix of [Options]. Old is the expected value,
// of which the first TagLen bytes are compared; it is empty for an absent key. New is the new
// value; it is empty to delete the key. Keep is the time after which the engine expires the value,
// rounded up to milliseconds.
type Write struct {
	Key, Old, New []byte
	Keep          time.Duration
}

// Found is a key that a scan has found, without the prefix, and its value.
type Found struct {
	Key, Value []byte
}
