package compiler

import (
	"crypto/sha1"
	"encoding/hex"
)

// SHA returns the SHA-1 of source in 40 lower-case hexadecimal digits.
func SHA(source []byte) string {
	sum := sha1.Sum(source)
	return hex.EncodeToString(sum[:])
}
