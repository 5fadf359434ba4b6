package acl

import "fmt"

// RuleError says that a rule cannot be applied, and why, in Redis' words.
type RuleError struct {
	Rule string
	Why  string
}

// Error returns the text of the reply to ACL SETUSER.
func (e *RuleError) Error() string {
	return fmt.Sprintf("Error in ACL SETUSER modifier '%s': %s", e.Rule, e.Why)
}

// parenthesisError is the error for a selector without a closing parenthesis. start is the word
// with which the selector begins.
type parenthesisError struct{ start string }

// Error implements the error interface.
func (e *parenthesisError) Error() string {
	return fmt.Sprintf("Unmatched parenthesis in acl selector starting at '%s'.", e.start)
}

// These are the reasons of a [RuleError].
const (
	whySyntax      = "Syntax error"
	whyUnknown     = "Unknown command or category name in ACL"
	whyAllKeys     = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
	whyAllChannels = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	whyNoPassword  = "The password you are trying to remove from the user does not exist"
	whyHash        = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	whyTooMany     = "Too many passwords, patterns, selectors or commands"
	whyFirstArg    = "Allowing first-arg of a subcommand is not supported"
)
