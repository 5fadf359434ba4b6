package blocking

import "github.com/cellserver/cellserver/command"

// PopSyntax and ManyReply are texts in the entries of several pop commands: their syntax, and the
// description of the reply with a count.
const (
	PopSyntax = "key [key ...] timeout"
	ManyReply = "an array of key and an array of elements, or null"
)

// ButLast is the KeySpec of commands such as BLPOP: all arguments are keys except the last, which
// is the timeout.
var ButLast = command.KeySpec{First: 1, Last: -2, Step: 1}
