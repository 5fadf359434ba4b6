package storetest

import "syscall"

// endWithParent returns attributes by which the system kills the process when its parent ends, so
// that a killed test leaves no nodes behind.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
