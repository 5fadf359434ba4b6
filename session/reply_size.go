package session

import "github.com/cellserver/cellserver/commands/command"

// How large a reply will be is asked before it is made beside the loops, so that its
// memory can be waited for. It is an estimate: the values may change meanwhile, and what
// the reply takes beyond it is counted as it is made.

// replySize is about how many bytes the reply of a command of the client copies.
func replySize(cl *command.Client, st command.Store, cmd *command.Command, args [][]byte) int {
	if cmd.ReplySize != nil {
		return cmd.ReplySize(cl, st, cmd)
	}
	return command.CopiedBy(st, cl.Selected(), cmd, args)
}
