package server

import (
	"github.com/cellserver/cellserver/admin"
	"github.com/cellserver/cellserver/process"
	"github.com/cellserver/cellserver/transport"
)

func (s *Server) transportLimits() transport.Limits {
	l := transport.DefaultLimits()
	l.Backlog = int(s.config.Number("client-output-backlog"))
	l.WriteTimeout = s.config.Seconds("write-timeout")
	l.KeepAlive = s.config.Seconds("tcp-keepalive")
	l.MaxInput = max(l.MaxInput, 2*int(s.config.Number("client-query-buffer-limit")))
	return l
}

// putInForce applies the present settings to all parts of the server.
func (s *Server) putInForce() {
	limits := s.config.Limits()
	limits.MaxClients = min(limits.MaxClients, s.clientsForFiles(limits.MaxClients))
	s.engine.SetLimits(limits)
	s.maxMemory.Store(s.config.Number("maxmemory"))
	s.keyspace.SetMaxMemory(s.maxMemory.Load())
	s.engine.Users.SetBound(userBound(s.maxMemory.Load()))
	s.keyspace.SetMaxElements(int(s.config.Number("collection-max-elements")))
	s.boundHeap()
	s.transport.SetLimits(s.transportLimits())
	s.persistence.PutInForce()
	if s.remote != nil {
		s.remote.SetFailPolicies(s.config.FailPolicies())
		s.divideBy(s.sharing.list.Count())
	}
	s.replicator.putInForce()
	s.level.Set(logLevels[s.config.Value("loglevel")])
}

// reservedFiles is the number of open files that the server reserves for its listeners, logs and
// files of persistence, as CONFIG_MIN_RESERVED_FDS of Redis does.
const reservedFiles = 32

// filesBeside returns the number of open files that the server needs in addition to one for each
// client. These are reservedFiles, a second descriptor for each TLS handshake on an event loop, and
// the connections to the admin port.
func (s *Server) filesBeside() int {
	n := reservedFiles
	if s.config.Value("tls-port") != "0" && s.kind == transport.KindEpoll {
		n += transport.MaxHandshakes(s.config.Loops())
	}
	if len(s.config.AdminAddresses()) > 0 {
		n += admin.DefaultMaxConnections
	}
	return n
}

// clientsForFiles returns the number of clients that the limit of open files permits: at most want,
// and at least 1. It raises the limit if it can, and logs a warning if the limit permits fewer
// clients than want.
func (s *Server) clientsForFiles(want int) int {
	beside := s.filesBeside()
	files := process.RaiseFiles(uint64(want + beside))
	if files >= uint64(want+beside) {
		return want
	}
	allowed := max(1, int(files)-beside)
	s.log.Warn("the limit of open files allows fewer clients than maxclients", "maxclients", want, "allowed", allowed)
	return allowed
}
