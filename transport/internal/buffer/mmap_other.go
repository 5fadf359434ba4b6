//go:build !linux

package buffer

// mapMemory returns nil, so that long input is in Go's heap.
func mapMemory(int) []byte { return nil }

func remapMemory([]byte, int) []byte { return nil }

func unmapMemory([]byte) {}
