package transport_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// TestKindsResolve: only auto stands for another kind.
func TestKindsResolve(t *testing.T) {
	auto := transport.KindGoroutine
	if runtime.GOOS == "linux" {
		auto = transport.KindEpoll
	}
	for kind, want := range map[transport.Kind]transport.Kind{
		transport.KindAuto: auto, transport.KindEpoll: transport.KindEpoll,
		transport.KindGoroutine: transport.KindGoroutine, "carrier pigeon": "carrier pigeon",
	} {
		require.Equal(t, want, kind.Resolve())
	}
}
