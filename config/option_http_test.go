package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetworks(t *testing.T) {
	v, err := networks{}.parse(" 10.1.2.3/8  192.0.2.1 ::ffff:10.0.0.1 ::ffff:10.0.0.0/104 2001:DB8::1/32 fe80::1%eth0 ::/0 ")
	require.NoError(t, err)
	require.Equal(t, "10.0.0.0/8 192.0.2.1/32 10.0.0.1/32 10.0.0.0/8 2001:db8::/32 fe80::1/128 ::/0", v)
	require.Len(t, networks{}.of(v), 7)
	for _, wrong := range []string{"10.0.0", "localhost", "10.0.0.0/33", "*", "10.0.0.1:80"} {
		_, err := networks{}.parse(wrong)
		require.ErrorContains(t, err, "no address or network", wrong)
	}
}
