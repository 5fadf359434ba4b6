package commands

import "github.com/cellserver/cellserver/collection"

// How large a reply will be is asked before it is made beside the loops, so that its
// memory can be waited for. It is an estimate: the values may change meanwhile, and what
// the reply takes beyond it is counted as it is made.

// replySize is about how many bytes the reply of a command of the session copies, or that
// of its transaction if the command is EXEC.
func (s *Session) replySize(st Store, cmd *Command, args [][]byte) (n int) {
	db := s.selected()
	if cmd.Name != "exec" || s.tx == nil {
		return copiedBy(st, db, cmd, args)
	}
	for i := range s.tx.queue {
		q := &s.tx.queue[i]
		if q.cmd.Name == "select" {
			db = s.engine.selects(q, db)
			continue
		}
		if n += copiedBy(st, db, q.cmd, q.args); n > maxReply {
			break
		}
	}
	return n
}

// repliesValues reports whether the command replies values that it finds, and changes
// none.
func (c *Command) repliesValues() bool {
	switch {
	case c.Flags&FlagReadonly == 0:
		return false
	case c.Name == "hget", c.Name == "hmget":
		return true
	}
	return c.Flags&FlagLinear != 0 || c.Group == "string" && c.Name != "strlen"
}

// copiedBy is about how many bytes the reply of a command copies.
func copiedBy(st Store, db int, cmd *Command, args [][]byte) (n int) {
	switch {
	case !cmd.repliesValues():
		return 0
	case cmd.Name == "hget", cmd.Name == "hmget":
		// Its error, and that there is no hash, are for the command to say.
		_, _ = st.ReadHash(db, args[1], func(h *collection.Hash) {
			for _, field := range args[2:] {
				value, _ := h.Get(field)
				n += copiedBytes(len(value))
			}
		})
		return n
	}
	for _, i := range cmd.Keys.positions(args) {
		elements, copied := st.Weigh(db, args[i])
		if n += copied + (elements+1)*headBytes; n > maxReply {
			break
		}
	}
	return n
}
