//go:build !linux

package epoll

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// Transport works only on Linux. The type exists on other systems so that code that chooses a
// transport compiles.
type Transport struct{ transport.Transport }

// New always returns an error, because this system has no epoll.
func New(transport.Handler, transport.Limits, int, *slog.Logger, func() time.Time) (*Transport, error) {
	return nil, errors.New("the epoll transport needs Linux")
}
