//go:build !real || !unix

package transport_test

// child returns false: servers in processes of their own are measured only on unix, with the tag
// real.
func child() bool { return false }
