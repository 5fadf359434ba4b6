package goroutine

import (
	"syscall"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// unsent returns how many bytes the kernel still holds for the peer, or -1 if that is not known. A
// blocked writer continues only when a third of the send buffer, up to a megabyte, is free again.
// Without this number a peer that reads slowly but steadily would seem to read nothing.
func unsent(conn any) int {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return -1
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1
	}
	n := -1
	err = raw.Control(func(fd uintptr) { n = base.Unsent(int(fd)) })
	if err != nil {
		return -1
	}
	return n
}
