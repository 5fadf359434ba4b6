//go:build !real || !unix

package transport_test

// child: processes of their own are measured on unix only, with the tag real.
func child() bool { return false }
