//go:build !linux

package storetest

import "syscall"

// endWithParent returns nil: this system cannot do that.
func endWithParent() *syscall.SysProcAttr { return nil }
