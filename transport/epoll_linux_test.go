package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

func epollOf(t *testing.T, loops int) factory {
	return func(h transport.Handler, lim transport.Limits) transport.Transport {
		tr, err := transport.NewEpoll(h, lim, loops, quiet)
		require.NoError(t, err)
		return tr
	}
}

func TestEpollConformance(t *testing.T) { run(t, epollOf(t, 2)) }

func TestEpollConformanceOneLoop(t *testing.T) { run(t, epollOf(t, 1)) }
