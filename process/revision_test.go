package process

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRevisionIsThatOfTheBuild: the revision comes from the stamp of a checkout, or from the
// version of the module.
func TestRevisionIsThatOfTheBuild(t *testing.T) {
	stamp := func(version string, pairs ...string) *debug.BuildInfo {
		b := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(pairs); i += 2 {
			b.Settings = append(b.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return b
	}
	for _, c := range []struct {
		build    *debug.BuildInfo
		commit   string
		modified bool
	}{
		{nil, "", false},
		{stamp("(devel)"), "", false},
		{stamp("(devel)", "vcs.revision", "0123456789abcdef", "vcs.modified", "false"), "0123456789abcdef", false},
		{stamp("v0.0.0-20261127232352-aaaaaaaaaaaa", "vcs.revision", "0123456789abcdef", "vcs.modified", "true"), "0123456789abcdef", true},
		{stamp("v0.0.0-20261127232352-0123456789ab"), "0123456789ab", false},
		{stamp("v0.1.1-0.20261127232352-0123456789ab"), "0123456789ab", false},
		{stamp("v0.1.1-0.20261127232352-0123456789ab+dirty"), "0123456789ab", false},
		{stamp("v0.1.0"), "", false},
	} {
		commit, modified := revisionOf(c.build)
		require.Equal(t, c.commit, commit)
		require.Equal(t, c.modified, modified)
	}
}
