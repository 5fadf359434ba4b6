package server_test

import (
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// heapBytes is what is reachable.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held is gone after the second
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func stackBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.StackInuse
}

// allocatedBy is how many bytes f allocates. Whatever else runs counts as well.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// lone is a server without sockets and a worker to feed its sessions on.
type lone struct {
	server *server.Server
	worker transport.Worker
	out    []byte
}

var shared struct {
	once sync.Once
	lone lone
}

// sharedBench is one server for all tests that only throw bytes at sessions.
func sharedBench(t testing.TB) *lone {
	shared.once.Do(func() {
		c, err := config.Load([]string{"--maxclients", "1000"}, nil)
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s, err := server.New(c, server.Options{Listeners: []net.Listener{l}})
		require.NoError(t, err)
		require.NoError(t, l.Close())
		shared.lone = lone{server: s, worker: s.Engine().NewWorker(), out: make([]byte, 0, 1<<16)}
	})
	return &shared.lone
}
