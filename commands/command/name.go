package command

import "encoding/binary"

// Names are looked up by their first and their last eight bytes, which overlap in a
// short name. Together with the length they are the whole name up to 16 bytes, and
// two comparisons of words, rather than one of every letter, tell whether it is the
// one, in whatever case.

// foldedWord is eight bytes of a lower-case name. fold has the bit in which the cases
// of a letter differ wherever there is a letter: x|fold == word then says exactly that
// x is the word in some case.
type foldedWord struct{ word, fold uint64 }

// ends returns the first and last eight bytes of name, or all of it, filled with
// zeros, if it is shorter.
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

// endsHash mixes what ends returns, of which it takes upper for lower case. The table
// is ours and small, so nobody can flood it with collisions.
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
