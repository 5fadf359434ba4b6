//go:build !linux

package transport_test

import "testing"

// transportsOf returns the transports that this system has.
func transportsOf(*testing.T) map[string]factory {
	return map[string]factory{"goroutine": newGoroutine}
}
