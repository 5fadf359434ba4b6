package direct

import (
	"bytes"
	"strconv"
)

// maxDepth is the maximum depth of arrays in a reply.
const maxDepth = 32

// replySize returns the length of the first reply in b, which has the form of RESP2. It is 0 if the end of the reply is
// not in b, and -1 if b does not begin with a reply.
func replySize(b []byte) int { return replySizeAt(b, maxDepth) }

func replySizeAt(b []byte, depth int) int {
	end := bytes.IndexByte(b, '\n') + 1
	switch {
	case end == 0:
		return 0
	case end < 3 || depth == 0:
		return -1
	}
	switch b[0] {
	case '+', '-', ':':
		return end
	case '$', '*':
	default:
		return -1
	}
	n, err := strconv.Atoi(string(b[1 : end-2]))
	switch {
	case err != nil || n < -1:
		return -1
	case b[0] == '$' && n >= 0:
		if n > len(b)-end-len("\r\n") {
			return 0
		}
		end += n + len("\r\n")
	case b[0] == '*':
		for range n {
			size := replySizeAt(b[end:], depth-1)
			if size <= 0 {
				return size
			}
			end += size
		}
	}
	return end
}
