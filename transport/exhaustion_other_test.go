//go:build !unix

package transport_test

// exhausted: only unix limits descriptors per process.
func exhausted() bool { return false }
