package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// maxName is the maximum length of a name in bytes.
const maxName = 64

// ErrName means that a policy of the server cannot have the given name.
var ErrName = errors.New("the name of a policy has 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'")

// CheckName returns nil for a name that a policy of the server can have, otherwise [ErrName]. Such a name needs no escapes in
// header fields and in the names of keys.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return ErrName
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return ErrName
		}
	}
	return nil
}

// MaxKey is the maximum length in bytes of a key that is sent as it is. A longer key is replaced by
// its [Digest].
const MaxKey = 128

// digestBytes is the number of bytes of the hash in a digest.
const digestBytes = 16

// Digest returns the first 16 bytes of the SHA-256 of text in hex. It stands for secrets and for long keys, so that
// no token is in SCAN, RL.TOP or a log.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestBytes])
}

// Bounded returns key, or its digest if it has more than [MaxKey] bytes.
func Bounded(key string) string {
	if len(key) > MaxKey {
		return Digest(key)
	}
	return key
}

// escape replaces characters of a part, so that different lists of parts are combined to different
// keys.
var escape = strings.NewReplacer("%", "%25", "|", "%7C")

// Combine returns the key of several parts, separated by "|".
func Combine(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = escape.Replace(p)
	}
	return strings.Join(escaped, "|")
}

// maxClauses is the maximum number of clauses of a policy.
const maxClauses = 16

// StateKey returns the key of the state of clause i, counted from 1, of inline limits called name, as the server
// names the states of a policy: "api:acme", "api:acme#2". A key that ends in "#" and a number from 2 to 16, and in any
// number of "#", gets one "#" more, so that no two keys share a state.
func StateKey(name, key string, i int) string {
	state := name + ":" + key
	bare := strings.TrimRight(key, "#")
	if at := strings.LastIndexByte(bare, '#'); at >= 0 {
		digits := bare[at+1:]
		if n, err := strconv.Atoi(digits); err == nil && strconv.Itoa(n) == digits && 1 < n && n <= maxClauses {
			state += "#"
		}
	}
	if i > 1 {
		state += "#" + strconv.Itoa(i)
	}
	return state
}
