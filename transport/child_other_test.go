//go:build !unix

package transport_test

// child: processes of their own are measured on unix only.
func child() bool { return false }
