//go:build !unix

package server

import "net"

func setBacklog(*net.TCPListener, int) error { return nil }

func checkListens(int) error { return nil }

func withUmask(f func() error) error { return f() }
