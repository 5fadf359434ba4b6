//go:build !linux

package transport

import (
	"errors"
	"log/slog"
)

const haveEpoll = false

func newEpoll(Handler, Limits, int, *slog.Logger) (Transport, error) {
	return nil, errors.New("transport: epoll needs linux")
}
