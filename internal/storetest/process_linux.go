package storetest

import "syscall"

// endWithParent makes the system kill a process whose parent has ended, so that a killed test
// leaves no nodes behind.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
