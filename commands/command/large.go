package command

import "math"

const (
	// unboundLarge is what large replies may take together where memory has no bound, and
	// leastLarge what they may take in any case.
	unboundLarge = 256 << 20
	leastLarge   = 1 << 20
)

// LargeRoom is how many bytes of large replies there may be: two thirds of what the
// process may take beside the keys. The rest is for scripts, for the end of each reply,
// and for garbage.
func (s *Server) LargeRoom() int64 {
	if s.Opts.ScriptRoom != nil {
		if bound, kept := s.Opts.ScriptRoom(); bound != math.MaxInt64 {
			return max((bound-kept)/3*2, leastLarge)
		}
	}
	if bound := s.Limits().ClientMemory; bound > 0 {
		return max(bound/2, leastLarge)
	}
	return unboundLarge
}
