package command

import "encoding/binary"

// nameSlot is an entry of the hash table of names.
type nameSlot struct {
	first, last foldedWord
	name        string   // the name in use, in lower case
	Cmd         *Command // nil if the slot is free
}

// Names are looked up by their first and their last eight bytes, which overlap in a short name.
// Together with the length these are the whole name up to 16 bytes, so that two 64-bit comparisons,
// instead of one for every letter, tell whether the name is the same in any case.

// foldedWord is eight bytes of a lower-case name. fold has the bit by which upper and lower case
// differ at the position of each letter, so x|fold == word is true exactly if x is the word in some
// case.
type foldedWord struct{ word, fold uint64 }

// ends returns the first and the last eight bytes of name. A name shorter than that is padded with
// zeros.
func ends(name []byte) (first, last uint64) {
	n := len(name)
	if n >= 8 {
		return binary.LittleEndian.Uint64(name), binary.LittleEndian.Uint64(name[n-8:])
	}
	if n >= 4 {
		first = uint64(binary.LittleEndian.Uint32(name)) | uint64(binary.LittleEndian.Uint32(name[n-4:]))<<32
		return first, first
	}
	for i, c := range name {
		first |= uint64(c) << (8 * i)
	}
	return first, first
}

// endsHash hashes the result of ends without regard to case. The table is small and built from our
// own names, so clients cannot flood it with collisions.
func endsHash(first, last uint64) uint64 {
	const lower, odd = 0x2020202020202020, 0x9e3779b97f4a7c15
	return ((first|lower)*odd ^ (last | lower)) * odd >> 40
}

func folded(word uint64) foldedWord {
	f := foldedWord{word: word}
	for shift := 0; shift < 64; shift += 8 {
		if c := byte(word >> shift); 'a' <= c && c <= 'z' {
			f.fold |= ('a' - 'A') << shift
		}
	}
	return f
}

// EqualFold reports whether name is the lower-case word, in any ASCII case.
func EqualFold(name []byte, word string) bool {
	if len(name) != len(word) {
		return false
	}
	for i, w := range []byte(word) {
		if c := name[i]; c != w && (c != w-('a'-'A') || w < 'a') {
			return false
		}
	}
	return true
}
