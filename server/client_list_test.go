package server_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientListShowsDescriptorsAndTheRunningCommand, as Redis does.
func TestClientListShowsDescriptorsAndTheRunningCommand(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c, other := f.dial(), f.dial()
		require.Equal(t, okReply, other.do("CLIENT", "SETNAME", "other"))
		require.Equal(t, okReply, c.do("CLIENT", "SETNAME", "c"))
		require.EqualValues(t, len("*2\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n"), c.listed("c", "qbuf"))
		require.EqualValues(t, len("CLIENTLIST"), c.listed("c", "argv-mem"))
		require.EqualValues(t, 26+10, c.listed("c", "tot-mem"))
		require.Zero(t, c.listed("other", "qbuf"))
		require.Zero(t, c.listed("other", "argv-mem"))
		require.Contains(t, c.do("CLIENT", "INFO"), " qbuf=26 qbuf-free=0 argv-mem=10 ")
		mine, theirs := c.listed("c", "fd"), c.listed("other", "fd")
		require.NotEqual(t, mine, theirs)
		if runtime.GOOS != "linux" {
			return
		}
		for _, fd := range []int64{mine, theirs} {
			file, err := os.Readlink("/proc/self/fd/" + strconv.FormatInt(fd, 10))
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(file, "socket:"), "fd %d is %s", fd, file)
		}
	})
}
