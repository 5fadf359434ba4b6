package storetest

import "syscall"

// endWithParent has the system kill a process whose parent is gone, so that not even a
// test that is killed leaves nodes behind.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
