package transport_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestClientListShowsDescriptorsAndTheRunningCommand: CLIENT LIST has both, as in Redis.
func TestClientListShowsDescriptorsAndTheRunningCommand(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind)
		c, other := f.Dial(), f.Dial()
		require.Equal(t, inproc.OK, other.Do("CLIENT", "SETNAME", "other"))
		require.Equal(t, inproc.OK, c.Do("CLIENT", "SETNAME", "c"))
		require.EqualValues(t, len("*2\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n"), c.Listed("c", "qbuf"))
		require.EqualValues(t, len("CLIENTLIST"), c.Listed("c", "argv-mem"))
		require.EqualValues(t, 26+10, c.Listed("c", "tot-mem"))
		require.Zero(t, c.Listed("other", "qbuf"))
		require.Zero(t, c.Listed("other", "argv-mem"))
		require.Contains(t, c.Do("CLIENT", "INFO"), " qbuf=26 qbuf-free=0 argv-mem=10 ")
		mine, theirs := c.Listed("c", "fd"), c.Listed("other", "fd")
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

// TestInfoCountsReadsAndWrites: a command that waits for its reply counts one read and one write.
func TestInfoCountsReadsAndWrites(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		c := inproc.Serve(t, kind).Dial()
		reads, writes := c.InfoNumber("total_reads_processed"), c.InfoNumber("total_writes_processed")
		for range 100 {
			c.Do("PING")
		}
		require.GreaterOrEqual(t, c.InfoNumber("total_reads_processed")-reads, int64(100))
		require.GreaterOrEqual(t, c.InfoNumber("total_writes_processed")-writes, int64(99), "the last may not be counted yet")
	})
}

// TestMetricsShowHowBusyLoopsAre applies to a transport with loops.
func TestMetricsShowHowBusyLoopsAre(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		_, url := inproc.ServeAdmin(t, kind)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
		require.NoError(t, err)
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		require.Equal(t, kind == "epoll", strings.Contains(string(body), `cellserver_loop_busy_ratio{loop="1"}`))
	})
}
