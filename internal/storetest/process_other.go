//go:build !linux

package storetest

import "syscall"

// endWithParent is nothing where the system has nothing of the kind.
func endWithParent() *syscall.SysProcAttr { return nil }
