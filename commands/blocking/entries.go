package blocking

import "github.com/cellserver/cellserver/commands/command"

// Texts that the entries of all pop commands share.
const (
	PopSyntax = "key [key ...] timeout"
	ManyReply = "an array of key and an array of elements, or null"
)

// ButLast is the KeySpec of a pop: all arguments are keys except the last, which is the timeout.
var ButLast = command.KeySpec{First: 1, Last: -2, Step: 1}
