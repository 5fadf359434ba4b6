package resp

import "strconv"

// SplitWords splits line into words at blanks, with the quotes and escapes of an inline command,
// which also apply to a configuration file. ok is false if quotes are unbalanced. Words without
// quotes are slices of line.
func SplitWords(line []byte) (words [][]byte, ok bool) {
	return splitWords(line, nil)
}

// AppendCommand appends the command with these words to dst, encoded as a client sends it: an array
// of bulk strings.
func AppendCommand[T string | []byte](dst []byte, words ...T) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(len(words)), 10), "\r\n"...)
	for _, word := range words {
		dst = append(strconv.AppendInt(append(dst, '$'), int64(len(word)), 10), "\r\n"...)
		dst = append(append(dst, word...), "\r\n"...)
	}
	return dst
}
