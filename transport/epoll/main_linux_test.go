package epoll_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func TestMain(m *testing.M) { os.Exit(transporttest.RunTests(m)) }

func epollOf(t *testing.T, loops int) transporttest.Factory {
	return func(h transport.Handler, lim transport.Limits, clock *transporttest.Clock) transport.Transport {
		tr, err := epoll.New(h, lim, loops, transporttest.Quiet, clock.Now)
		require.NoError(t, err)
		return tr
	}
}
