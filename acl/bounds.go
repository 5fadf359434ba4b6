package acl

import "errors"

// Bounds of what users may take.
const (
	// MaxUsers is how many users there may be, and MaxMemory about how many bytes they may
	// take together, if no less has been set.
	MaxUsers  = 100_000
	MaxMemory = 256 << 20
	// MaxRules is how long the text of the rules of a user may be, in bytes.
	MaxRules = 1 << 20
	// maxWords is how many rules may be said at once, and maxList how many passwords or
	// selectors a user may have, and how many patterns or commands each selector: all are
	// gone through for each rule.
	maxWords = 16 << 10
	maxList  = 4 << 10
	// rulesCost is what a user takes without rules, about.
	rulesCost = 384
)

// errTooLarge says that a bound of ours is reached.
var errTooLarge = errors.New("too many users, or rules that are too long")
