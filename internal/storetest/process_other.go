//go:build !linux

package storetest

import "syscall"

// endWithParent returns nil, since this system cannot kill a process when its parent ends.
func endWithParent() *syscall.SysProcAttr { return nil }
