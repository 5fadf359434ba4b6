package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

func TestGroupsAreAsConfigured(t *testing.T) {
	for value, want := range map[string]string{
		"prefix :": "prefix :", "PREFIX /": "prefix /", "prefix ::": "prefix ::", "none": "none", " None ": "none",
		"": "", "prefix": "", "suffix :": "", "none :": "", "prefix 123456789": "", "prefix :\n": "prefix :",
	} {
		c, err := config.Load([]string{"--metrics-group-by", value}, nil)
		if want == "" {
			require.Error(t, err, "%q", value)
			continue
		}
		require.NoError(t, err, "%q", value)
		require.Equal(t, want, c.Value("metrics-group-by"))
		groups := c.Groups()
		if want == "none" {
			require.Zero(t, groups.Max)
			continue
		}
		require.Equal(t, strings.TrimPrefix(want, "prefix "), groups.Delimiter)
		require.Equal(t, 100, groups.Max)
		require.Equal(t, 80, groups.Near)
	}
	_, err := config.Load([]string{"--metrics-max-groups", "201"}, nil)
	require.ErrorContains(t, err, "metrics-max-groups")
}
