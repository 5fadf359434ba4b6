package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

func TestNewKnowsItsKinds(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindAuto, transport.KindGoroutine} {
		tr, err := transport.New(kind, newLineHandler(), patientLimits(), 1, quiet)
		require.NoError(t, err)
		require.NoError(t, tr.Shutdown(t.Context()))
	}
	_, err := transport.New("carrier pigeon", newLineHandler(), patientLimits(), 1, quiet)
	require.ErrorContains(t, err, "carrier pigeon")
}

func TestLimitsWithoutSizesWork(t *testing.T) {
	f := func(h transport.Handler, lim transport.Limits, _ *transport.Clock) transport.Transport {
		tr, err := transport.New(transport.KindAuto, h, lim, 1, quiet)
		require.NoError(t, err)
		return tr
	}
	r := start(t, f, newLineHandler(), transport.Limits{})
	c := r.dial()
	c.send("echo 1", "big 100000")
	c.expect("1")
	_, err := c.r.Discard(100_001)
	require.NoError(t, err)
	r.tr.SetLimits(transport.Limits{})
	c.send("echo 2")
	c.expect("2")
}
