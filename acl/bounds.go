package acl

import "errors"

// Bounds on the memory of users.
const (
	// MaxUsers bounds the number of users. MaxMemory bounds about how many bytes they take
	// together, unless a lower bound was set.
	MaxUsers  = 100_000
	MaxMemory = 256 << 20
	// MaxRules bounds the bytes of the rules of a user as text.
	MaxRules = 1 << 20
	// maxWords bounds the rules in one call. maxList bounds the passwords and selectors of a user,
	// and the patterns and commands of a selector: each rule searches these lists.
	maxWords = 16 << 10
	maxList  = 4 << 10
	// rulesCost is about the memory of a user without rules.
	rulesCost = 384
)

// errTooLarge says that one of these bounds is exceeded.
var errTooLarge = errors.New("too many users, or rules that are too long")
