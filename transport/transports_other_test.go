//go:build !linux

package transport_test

import (
	"testing"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// transportsOf returns the transports that this system has.
func transportsOf(*testing.T) map[string]transporttest.Factory {
	return map[string]transporttest.Factory{"goroutine": newGoroutine}
}
