package acl

import "errors"

// These are the bounds on the memory of users and on the work of applying rules.
const (
	// MaxUsers is the maximum number of users. MaxMemory is about the maximum memory, in bytes,
	// that they take together, unless a lower bound was set.
	MaxUsers  = 100_000
	MaxMemory = 256 << 20
	// MaxRules is the maximum length, in bytes, of the rules of a user as text.
	MaxRules = 1 << 20
	// maxWords is the maximum number of rules in one call. maxList is the maximum number of
	// passwords and of selectors of a user, and of patterns and of commands in a selector; it is
	// bounded because each rule searches these lists.
	maxWords = 16 << 10
	maxList  = 4 << 10
	// rulesCost is about the memory, in bytes, of a user without rules.
	rulesCost = 384
)

// errTooLarge is the error if one of the bounds above is exceeded.
var errTooLarge = errors.New("too many users, or rules that are too long")
