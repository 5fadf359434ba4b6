package policy

import (
	"bytes"
	"errors"
	"strconv"
)

// These are the bounds of names and texts, in bytes, and of the clauses of a policy.
const (
	MaxName    = 64
	MaxPattern = 1024
	MaxComment = 1024
	MaxClauses = 16
)

// MaxCallClauses is the maximum number of clauses that the policies of one call have in all, and so of its policies.
const MaxCallClauses = 64

// RulesPrefix is the beginning of the names of the policies that the option rls-config makes.
const RulesPrefix = "rls."

// These are the errors of an invalid name or pattern.
var (
	// ErrName means that the name of a policy is empty, is too long or has a character that is not
	// allowed.
	ErrName = errors.New("the name of a policy has 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'")
	// ErrPattern means that the pattern is empty or too long.
	ErrPattern = errors.New("a pattern has 1 to 1024 bytes")
)

// CheckName returns nil for a valid name of a policy, otherwise [ErrName]. A name has 1 to
// [MaxName] characters of A-Z, a-z, 0-9, '_', '.' and '-'. A colon would make state keys ambiguous.
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

// CheckPattern returns nil for a valid pattern, otherwise [ErrPattern]. A pattern has 1 to
// [MaxPattern] bytes of any value. If its last byte is '*', it matches all keys that begin with the
// bytes before. Otherwise it matches the key that is equal to it. A star elsewhere has no special
// meaning.
func CheckPattern(pattern []byte) error {
	if len(pattern) < 1 || len(pattern) > MaxPattern {
		return ErrPattern
	}
	return nil
}

// prefixOf returns the prefix of the keys that match pattern, and true. If pattern is exact, it
// returns pattern itself and false.
func prefixOf(pattern string) (string, bool) {
	if last := len(pattern) - 1; last >= 0 && pattern[last] == '*' {
		return pattern[:last], true
	}
	return pattern, false
}

// endsInClause reports whether key ends in '#' and a number from 2 to [MaxClauses], as the state
// keys of all clauses but the first do.
func endsInClause(key []byte) bool {
	n := len(key)
	if n < 2 || key[n-1] < '0' || key[n-1] > '9' {
		return false
	}
	return key[n-2] == '#' && key[n-1] > '1' || n > 2 && key[n-3] == '#' && key[n-2] == '1' && key[n-1] <= '0'+MaxClauses%10
}

// isMarked reports whether [AppendStateKey] adds one '#' to key. It does so for a key that ends
// like the state key of a second or later clause. Otherwise such a key could have the same state
// key as a clause of another key. For the same reason it adds one '#' if any number of '#' follow
// that ending.
func isMarked(key []byte) bool {
	for len(key) > 0 && key[len(key)-1] == '#' {
		key = key[:len(key)-1]
	}
	return endsInClause(key)
}

// AppendStateKey appends the key under which the keyspace stores the state of clause i, from 1 to
// [MaxClauses], of a policy for key: "api:acme" for the first clause, "api:acme#2" for the second.
// The state key of the policy's candidate is "api#try:acme": no policy's name has a '#'. A key that
// ends in '#' and a number from 2 to [MaxClauses], followed by any number of '#', gets one
// additional '#': "api:room#5#" and "api:room#5##2". Any key is valid, and no two share a state.
func AppendStateKey(dst, policy, key []byte, i int, candidate bool) []byte {
	dst = append(dst, policy...)
	if candidate {
		dst = append(dst, "#try"...)
	}
	dst = append(dst, ':')
	if dst = append(dst, key...); isMarked(key) {
		dst = append(dst, '#')
	}
	if i > 1 {
		dst = append(dst, '#')
		dst = strconv.AppendInt(dst, int64(i), 10)
	}
	return dst
}

// AppendBanKey appends the key under which the keyspace stores the bans of key under a policy: "api#ban:acme". Those
// of the policy's candidate are under "api#try#ban:acme".
func AppendBanKey(dst, policy, key []byte, candidate bool) []byte {
	dst = append(dst, policy...)
	if candidate {
		dst = append(dst, "#try"...)
	}
	dst = append(dst, "#ban:"...)
	return append(dst, key...)
}

// ParseStateKey returns the policy and the key for which [AppendStateKey] has made state. For a
// candidate, policy ends in "#try". For any other state the results have no meaning.
func ParseStateKey(state []byte) (policy, key []byte) {
	policy, key, _ = bytes.Cut(state, []byte(":"))
	if endsInClause(key) {
		key = key[:bytes.LastIndexByte(key, '#')]
	}
	if isMarked(key) {
		key = key[:len(key)-1]
	}
	return policy, key
}

// These are the numbers that [StateNumber] returns for states that do not belong to a clause of a policy. The state of
// clause i has the number i, and the state of clause i of the candidate the number candidateStates + i. Numbers are
// stored and never change their meaning.
const (
	candidateStates   = 64
	banState          = 128
	candidateBanState = 129
)

// StateNumber returns the number of a state among the states of key under a policy. state is a key that
// [AppendStateKey] or [AppendBanKey] has made for policy and key. The result is 1 to [MaxClauses] for a clause of the
// policy, 65 to 80 for a clause of its candidate, 128 for the bans, and 129 for the bans of the candidate. ok is false
// for any other state.
func StateNumber(state, policy, key []byte) (n uint8, ok bool) {
	rest, ok := bytes.CutPrefix(state, policy)
	if !ok {
		return 0, false
	}
	first, bans := uint8(0), uint8(banState)
	if after, is := bytes.CutPrefix(rest, []byte("#try")); is {
		rest, first, bans = after, candidateStates, candidateBanState
	}
	if after, is := bytes.CutPrefix(rest, []byte("#ban:")); is {
		return bans, bytes.Equal(after, key)
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(":")); !ok {
		return 0, false
	}
	if rest, ok = bytes.CutPrefix(rest, key); ok && isMarked(key) {
		rest, ok = bytes.CutPrefix(rest, []byte("#"))
	}
	switch {
	case !ok:
		return 0, false
	case len(rest) == 0:
		return first + 1, true
	case rest[0] != '#' || !endsInClause(rest):
		return 0, false
	}
	i, err := strconv.Atoi(string(rest[1:]))
	if err != nil || i < 2 || i > MaxClauses {
		return 0, false
	}
	return first + uint8(i), true
}

// ParseState returns the policy and the key of a state, and its number among the states of the key: see [StateNumber].
// ok is false if [AppendState] makes no such state.
func ParseState(state []byte) (policy, key []byte, n uint8, ok bool) {
	policy, key, ok = bytes.Cut(state, []byte("#ban:"))
	if !ok || CheckName(bytes.TrimSuffix(policy, []byte("#try"))) != nil {
		policy, key = ParseStateKey(state)
	}
	policy = bytes.TrimSuffix(policy, []byte("#try"))
	if CheckName(policy) != nil {
		return nil, nil, 0, false
	}
	n, ok = StateNumber(state, policy, key)
	return policy, key, n, ok
}

// MaxState is the largest number of a state of a key under a policy.
const MaxState = candidateBanState

// AppendState appends the state with the number n among the states of key under a policy: it is the inverse of
// [StateNumber]. ok is false if no state has this number. Then nothing is appended.
func AppendState(dst, policy, key []byte, n uint8) (state []byte, ok bool) {
	switch {
	case n == banState, n == candidateBanState:
		return AppendBanKey(dst, policy, key, n == candidateBanState), true
	case 1 <= n && n <= MaxClauses:
		return AppendStateKey(dst, policy, key, int(n), false), true
	case candidateStates < n && n <= candidateStates+MaxClauses:
		return AppendStateKey(dst, policy, key, int(n)-candidateStates, true), true
	}
	return dst, false
}
