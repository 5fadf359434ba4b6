package commands

import "github.com/cellserver/cellserver/commands/command"

// How large a reply will be is asked before it is made beside the loops, so that its
// memory can be waited for. It is an estimate: the values may change meanwhile, and what
// the reply takes beyond it is counted as it is made.

// replySize is about how many bytes the reply of a command of the session copies, or that
// of its transaction if the command is EXEC.
func (s *Session) replySize(st command.Store, cmd *command.Command, args [][]byte) (n int) {
	db := s.Selected()
	if cmd.Name != "exec" || s.tx == nil {
		return command.CopiedBy(st, db, cmd, args)
	}
	for i := range s.tx.queue {
		q := &s.tx.queue[i]
		if q.cmd.Name == "select" {
			db = selects(&s.engine.Server, q, db)
			continue
		}
		if n += command.CopiedBy(st, db, q.cmd, q.args); n > command.MaxReply {
			break
		}
	}
	return n
}
