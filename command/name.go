package command

import "encoding/binary"

// nameSlot is an entry of the hash table in which a Table looks up commands by name.
type nameSlot struct {
	first, last foldedWord
	name        string   // the name in use, in lower case
	Cmd         *Command // the command; nil if the slot is free
}

// Names are looked up by their first and their last eight bytes, which overlap in a name of less
// than 16 bytes. Together with the length they determine a name of up to 16 bytes. So two
// comparisons of 64 bits, instead of one for every letter, decide whether such a name is the same
// in any case.

// foldedWord is eight bytes of a lower-case name, for a comparison without regard to case. In fold,
// each byte that is a letter has the bit 0x20 set, by which the cases differ. So x|fold == word
// holds exactly if x is word in any case.
type foldedWord struct{ word, fold uint64 }

// ends returns the first and the last eight bytes of name as little-endian integers. For a name of
// four to seven bytes, first and last are both made of its first and its last four bytes. A shorter
// name is padded with zeros.
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

// endsHash returns a hash of first and last, the results of ends, that does not depend on the case
// of letters. The table is small and built from the server's own names, so clients cannot flood it
// with collisions.
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

// EqualFold reports whether name equals word, which is in lower case, without regard to the case of
// ASCII letters.
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
