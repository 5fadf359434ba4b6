package command

import "github.com/cellserver/cellserver/collection"

// RepliesValues reports whether the command replies values that it finds, and changes
// none.
func (c *Command) RepliesValues() bool {
	switch {
	case c.Flags&FlagReadonly == 0:
		return false
	case c.Name == "hget", c.Name == "hmget":
		return true
	}
	return c.Flags&FlagLinear != 0 || c.Group == "string" && c.Name != "strlen"
}

// CopiedBy is about how many bytes the reply of a command copies.
func CopiedBy(st Store, db int, cmd *Command, args [][]byte) (n int) {
	switch {
	case !cmd.RepliesValues():
		return 0
	case cmd.Name == "hget", cmd.Name == "hmget":
		// Its error, and that there is no hash, are for the command to say.
		_, _ = st.ReadHash(db, args[1], func(h *collection.Hash) {
			for _, field := range args[2:] {
				value, _ := h.Get(field)
				n += CopiedBytes(len(value))
			}
		})
		return n
	}
	for _, i := range cmd.Keys.Positions(args) {
		elements, copied := st.Weigh(db, args[i])
		if n += copied + (elements+1)*HeadBytes; n > MaxReply {
			break
		}
	}
	return n
}
