//go:build !unix

package listen

import "net"

func setBacklog(*net.TCPListener, int) error { return nil }

func checkListens(int) error { return nil }

func withUmask(f func() error) error { return f() }
