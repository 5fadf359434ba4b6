package resp

// SplitWords splits a line into words at spaces, with the quotes and escapes of an
// inline command, which are also those of a configuration file. ok is false when a
// quote is not closed. Words without quotes point into
// line.
func SplitWords(line []byte) (words [][]byte, ok bool) {
	return splitWords(line, nil)
}
