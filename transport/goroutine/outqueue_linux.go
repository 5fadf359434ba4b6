package goroutine

import (
	"syscall"

	"github.com/cellserver/cellserver/transport/internal/base"
)

// unsent returns how many bytes the kernel still holds for the peer, or -1 when it
// does not say. The kernel lets a writer go on only after a third of its buffer,
// up to a megabyte, is free again: without asking, a peer that reads slowly but
// steadily looks as if it took nothing.
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
