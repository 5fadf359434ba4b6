package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func TestLimitsWithoutSizesWork(t *testing.T) {
	for name, f := range transportsOf(t) {
		t.Run(name, func(t *testing.T) { limitsWithoutSizes(t, f) })
	}
}

func limitsWithoutSizes(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transport.Limits{})
	c := r.Dial()
	c.Send("echo 1", "big 100000")
	c.Expect("1")
	_, err := c.Reader.Discard(100_001)
	require.NoError(t, err)
	r.Transport.SetLimits(transport.Limits{})
	c.Send("echo 2")
	c.Expect("2")
}
