package server

import (
	"math"

	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/process"
)

// userShare is the fraction 1/userShare of maxmemory that users may take by ACL SETUSER, and
// minUsers the number of bytes that they may take with any maxmemory.
const (
	userShare = 10
	minUsers  = 1 << 20
)

// userBound returns how many bytes users may take by ACL SETUSER. If maxMemory is 0, it is
// math.MaxInt64, and only the bound of package acl applies.
func userBound(maxMemory int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	return max(maxMemory/userShare, minUsers)
}

// outsideHeap returns how many bytes outside of Go's heap are taken by tables now, and by long
// input at most in this second.
func (s *Server) outsideHeap() int64 { return s.keyspace.Outside() + s.longInput.most.Load() }

// boundHeap sets the bound of Go's heap that follows from maxmemory and the present memory outside
// of the heap. It does nothing without [Options].LimitHeap. Any goroutine may call it.
func (s *Server) boundHeap() {
	if s.given.LimitHeap != nil {
		s.heap.SetBound(s.maxMemory.Load(), s.outsideHeap())
	}
}

// scriptRoom returns how many bytes of objects Go's heap may have while scripts run, and how many
// of them belong to keys. bound is math.MaxInt64 without maxmemory. scriptRoom implements
// [lua.Limits].Room.
func (s *Server) scriptRoom() (bound, kept int64) {
	kept = s.keyspace.InHeap()
	m := s.maxMemory.Load()
	if m <= 0 || s.given.FreeHeap == nil {
		return math.MaxInt64, kept
	}
	return process.ScriptRoom(m, s.outsideHeap()), kept
}

// usedMemory returns how many bytes the process takes, for keys and everything else.
func (s *Server) usedMemory() int64 {
	_, heap := s.engine.Process().Memory()
	memory := local.Memory(s.keyspace.Stats())
	return memory.Used(heap)
}

// clientMemory returns how many bytes are taken by input and output of clients that has not been
// processed or sent.
func (s *Server) clientMemory() int64 {
	t := s.transport.Stats()
	return t.Pending + t.Unread + s.engine.ClientMemory()
}

// besideKeys returns the number of bytes that count against maxmemory in addition to the keys:
// those of policies, users and clients. Large replies do not count as far as they fit into the
// memory beyond maxmemory.
func (s *Server) besideKeys() int64 {
	beside, most := s.clientMemory()+s.policies.registry.Bytes()+s.engine.Users.Memory(), s.maxMemory.Load()
	if bound, _ := s.scriptRoom(); most > 0 && bound != math.MaxInt64 {
		beside -= min(s.engine.LargeReplies(), max(bound-most, 0))
	}
	return beside
}

// returnHeap returns memory that keys and clients have stopped using to the system. It does nothing
// without [Options].FreeHeap.
func (s *Server) returnHeap() {
	if s.given.FreeHeap != nil {
		s.heap.ReturnIdle(s.keyspace.InHeap(), s.clientMemory())
	}
}
