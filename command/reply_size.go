package command

import (
	"math"

	"github.com/cellserver/cellserver/env"
)

// CopiedBy returns about how many bytes the reply of a call of cmd with args copies; 0 for a
// command that replies with no stored values. Values that are not in this process count as empty.
// Above [MaxReply] the result is not exact.
func CopiedBy(st env.Store, db int, cmd *Command, args [][]byte) (n int) {
	local, is := st.(env.Local)
	switch {
	case !cmd.RepliesValues():
		return 0
	case cmd.Copies != nil && is:
		return cmd.Copies(local, db, args)
	}
	for i, end, step := cmd.Keys.Range(args); i < end; i += step {
		elements, copied := 0, 0
		if is {
			elements, copied = local.Weigh(db, args[i])
		}
		if n += copied + (elements+1)*HeadBytes; n > MaxReply {
			break
		}
	}
	return n
}

const (
	// unboundLarge is the maximum number of bytes of all large replies together if memory has no
	// bound. leastLarge is the number of bytes that they may take in any case.
	unboundLarge = 256 << 20
	leastLarge   = 1 << 20
)

// LargeRoom returns how many bytes all large replies together may take. With a bound on Go's heap
// it is two thirds of the part that is not for keys; the rest is for scripts, for the end of each
// reply, and for garbage. Otherwise it is half of maxmemory-clients or, without that bound, a
// constant. It is never less than leastLarge.
func (s *Server) LargeRoom() int64 {
	if s.Options.ScriptRoom != nil {
		if bound, kept := s.Options.ScriptRoom(); bound != math.MaxInt64 {
			return max((bound-kept)/3*2, leastLarge)
		}
	}
	if bound := s.Limits().ClientMemory; bound > 0 {
		return max(bound/2, leastLarge)
	}
	return unboundLarge
}
