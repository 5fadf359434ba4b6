package resp

import "strconv"

// SplitWords splits a line into words at spaces, with the quotes and escapes of an inline command,
// which are also those of a configuration file. ok is false if a quote is not closed. Words without
// quotes are slices of line.
func SplitWords(line []byte) (words [][]byte, ok bool) {
	return splitWords(line, nil)
}

// AppendCommand appends a command in the form that clients send.
func AppendCommand[T string | []byte](dst []byte, words ...T) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(len(words)), 10), "\r\n"...)
	for _, word := range words {
		dst = append(strconv.AppendInt(append(dst, '$'), int64(len(word)), 10), "\r\n"...)
		dst = append(append(dst, word...), "\r\n"...)
	}
	return dst
}
