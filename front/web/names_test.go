package web_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/web"
)

// TestTheOptionsHaveAllNames checks that the options have the names of styles and gateways, and no others.
func TestTheOptionsHaveAllNames(t *testing.T) {
	for option, names := range map[string][]string{"http-headers": headers.Styles, "http-gateway": web.Gateways} {
		for _, name := range names {
			verdict, _, err := config.Judge(option, name)
			require.NoError(t, err, name)
			require.Equal(t, config.Honoured, verdict, name)
		}
		_, _, err := config.Judge(option, "other")
		for _, name := range names {
			require.ErrorContains(t, err, name)
		}
		require.True(t, slices.Contains(names, config.Default().Value(option)))
	}
}
