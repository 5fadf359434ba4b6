package process_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
	"github.com/stretchr/testify/require"
)

func TestFindKnowsNoProcessOfAnUnusedAddress(t *testing.T) {
	for _, addr := range []net.Addr{
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, // reserved for documents: never ours
		&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1},
		&net.UnixAddr{Name: filepath.Join(t.TempDir(), "nobody"), Net: "unix"},
		&net.IPAddr{},
	} {
		_, err := process.Find(addr)
		require.ErrorIs(t, err, process.ErrUnknown, "%v", addr)
	}
}

func TestUsageGrows(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell")
	}
	before, err := process.Of(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, before.RSS, int64(1<<20))
	for started := time.Now(); time.Since(started) < 5*time.Minute; {
		after, err := process.Of(os.Getpid())
		require.NoError(t, err)
		if after.CPU > before.CPU {
			return
		}
	}
	t.Fatal("ten seconds of work cost nothing")
}

func TestUsageOfNobody(t *testing.T) {
	_, err := process.Of(1 << 30)
	require.ErrorIs(t, err, process.ErrUnknown)
}

func TestMachine(t *testing.T) {
	m := process.This()
	require.NotEmpty(t, m.Processor)
	require.Positive(t, m.Cores)
	require.Contains(t, m.System, runtime.GOOS)
	require.Equal(t, runtime.Version(), m.Go)
}

func TestMachineCountsCoresItMayNotUse(t *testing.T) {
	m := process.Machine{Processor: "amd64", Cores: 1}
	m.Describe("processor\t: 0\nmodel name\t: Some CPU\n\nprocessor\t: 1\nmodel name\t: Some CPU\n")
	require.Equal(t, process.Machine{Processor: "Some CPU", Cores: 2}, m)
	m.Describe("")
	require.Equal(t, 2, m.Cores)
}
