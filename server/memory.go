package server

import (
	"math"

	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/process"
)

// userShare is the divisor of maxmemory that gives the number of bytes that users may take by ACL
// SETUSER. minUsers is the number of bytes that they may take with any maxmemory.
const (
	userShare = 10
	minUsers  = 1 << 20
)

// userBound returns the maximum number of bytes that users may take by ACL SETUSER. If maxMemory is
// 0, it is math.MaxInt64: then only the bound of package acl applies.
func userBound(maxMemory int64) int64 {
	if maxMemory <= 0 {
		return math.MaxInt64
	}
	return max(maxMemory/userShare, minUsers)
}

// outsideHeap returns the number of bytes of server memory outside of Go's heap: the present size
// of the tables of the keyspace, and the maximum size that client input had in the present second.
func (s *Server) outsideHeap() int64 { return s.keyspace.Outside() + s.longInput.most.Load() }

// boundHeap sets the bound of Go's heap that follows from maxmemory and the present memory outside
// of the heap. It does nothing without [Options].LimitHeap. Any goroutine may call it.
func (s *Server) boundHeap() {
	if s.given.LimitHeap != nil {
		s.heap.SetBound(s.maxMemory.Load(), s.outsideHeap())
	}
}

// scriptRoom implements [lua.Limits].Room. bound is the number of bytes of objects that Go's heap
// may have while scripts run; it is math.MaxInt64 without maxmemory or without [Options].FreeHeap.
// kept is the number of bytes that keys take in Go's heap.
func (s *Server) scriptRoom() (bound, kept int64) {
	kept = s.keyspace.InHeap()
	m := s.maxMemory.Load()
	if m <= 0 || s.given.FreeHeap == nil {
		return math.MaxInt64, kept
	}
	return process.ScriptRoom(m, s.outsideHeap()), kept
}

// usedMemory returns the number of bytes that the server uses for keys and everything else.
func (s *Server) usedMemory() int64 {
	_, heap := s.engine.Process().Memory()
	memory := local.Memory(s.keyspace.Stats())
	return memory.Used(heap)
}

// clientMemory returns the number of bytes that clients take: input and output in the buffers of
// their connections, and the memory of their sessions. See [session.Engine.ClientMemory].
func (s *Server) clientMemory() int64 {
	t := s.Traffic()
	return t.Pending + t.Unread + s.engine.ClientMemory()
}

// besideKeys returns the number of bytes that count against maxmemory in addition to the keys:
// those of policies, users and clients. Large replies count only as far as they exceed the memory
// that scripts may take beyond maxmemory.
func (s *Server) besideKeys() int64 {
	beside, most := s.clientMemory()+s.policies.registry.Bytes()+s.engine.Users.Memory(), s.maxMemory.Load()
	if bound, _ := s.scriptRoom(); most > 0 && bound != math.MaxInt64 {
		beside -= min(s.engine.LargeReplies(), max(bound-most, 0))
	}
	return beside
}

// tendHeap chooses how often garbage is collected, and returns memory to the operating system when keys
// and clients have stopped using much of it. It must be called about once a second.
func (s *Server) tendHeap() {
	s.heap.SetPace()
	if s.given.FreeHeap != nil {
		s.heap.ReturnIdle(s.keyspace.InHeap(), s.clientMemory())
	}
}
