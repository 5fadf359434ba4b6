package policy

import (
	"errors"
	"strconv"
)

// The bounds of names and texts, in bytes, and of the clauses of a policy.
const (
	MaxName    = 64
	MaxPattern = 1024
	MaxComment = 1024
	MaxClauses = 16
)

// The ways in which a name, a pattern or a key can be unsound.
var (
	// ErrName: the name of a policy that is empty, too long or has other characters.
	ErrName = errors.New("the name of a policy has 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'")
	// ErrPattern: a pattern that is empty or too long.
	ErrPattern = errors.New("a pattern has 1 to 1024 bytes")
	// ErrKey: see [CheckKey].
	ErrKey = errors.New("a key must not end in '#' and a number from 2 to 16, since state keys of further clauses do")
)

// CheckName returns nil for the name of a policy, else [ErrName]: it has 1 to [MaxName]
// characters of A-Z, a-z, 0-9, '_', '.' and '-'. A colon would make state keys ambiguous.
func CheckName(name []byte) error {
	if len(name) < 1 || len(name) > MaxName {
		return ErrName
	}
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return ErrName
		}
	}
	return nil
}

// CheckPattern returns nil for a pattern, else [ErrPattern]: it has 1 to [MaxPattern] bytes of
// any value. A pattern is a key, or if its last byte is '*' all keys that begin with the bytes
// before. A star elsewhere stands for itself.
func CheckPattern(pattern []byte) error {
	if len(pattern) < 1 || len(pattern) > MaxPattern {
		return ErrPattern
	}
	return nil
}

// prefixOf returns what keys begin with under pattern, and false if pattern is exact.
func prefixOf(pattern string) (string, bool) {
	if last := len(pattern) - 1; last >= 0 && pattern[last] == '*' {
		return pattern[:last], true
	}
	return pattern, false
}

// CheckKey returns nil for a key that a policy may be used with, else [ErrKey]: one that ends in
// '#' and a number from 2 to [MaxClauses] would share state with a further clause of another key.
func CheckKey(key []byte) error {
	n := len(key)
	if n < 2 || key[n-1] < '0' || key[n-1] > '9' {
		return nil
	}
	if key[n-2] == '#' && key[n-1] > '1' || n > 2 && key[n-3] == '#' && key[n-2] == '1' && key[n-1] <= '0'+MaxClauses%10 {
		return ErrKey
	}
	return nil
}

// AppendStateKey appends the key of the store that has the state of clause i, from 1 to
// [MaxClauses], of a policy for key: "api:acme" for the first clause, "api:acme#2" for the
// second. That of the policy's candidate is "api#try:acme": no policy's name has a '#'.
func AppendStateKey(dst, policy, key []byte, i int, candidate bool) []byte {
	dst = append(dst, policy...)
	if candidate {
		dst = append(dst, "#try"...)
	}
	dst = append(dst, ':')
	dst = append(dst, key...)
	if i > 1 {
		dst = append(dst, '#')
		dst = strconv.AppendInt(dst, int64(i), 10)
	}
	return dst
}
