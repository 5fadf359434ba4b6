package transport_test

import (
	"testing"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// transportsOf returns the transports that this system has.
func transportsOf(t *testing.T) map[string]transporttest.Factory {
	return map[string]transporttest.Factory{"goroutine": newGoroutine, "epoll": epollOf(t, 2)}
}
