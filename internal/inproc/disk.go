package inproc

import (
	"syscall"

	"github.com/cellserver/cellserver/internal/faultfs"
)

// FillDisk makes the disk of the node have no room for a write, or room again.
func (n *Node) FillDisk(full bool) {
	if !full {
		n.Disk.Inject(nil)
		return
	}
	n.Disk.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
}
