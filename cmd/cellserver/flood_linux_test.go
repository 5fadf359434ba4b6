//go:build real

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
)

// resident returns the present and the maximum resident memory of a process, in bytes.
func resident(t *testing.T, pid int) (now, most int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	field := func(name string) int64 {
		_, after, found := strings.Cut(string(status), "\n"+name+":")
		require.True(t, found, name)
		kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
		require.NoError(t, err)
		return kib << 10
	}
	return field("VmRSS"), field("VmHWM")
}

// flood calls CL.THROTTLE once for each of n unused keys, with 500 calls in flight. It returns how
// many were allowed and how many were refused for lack of memory. If parts is not nil, flood sends
// a value after each tenth of the calls, and closes it at the end.
func flood(socket, name string, n int, period string, parts chan<- struct{}) (allowed, refused int, err error) {
	if parts != nil {
		defer close(parts)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	const batch = 500
	r := bufio.NewReaderSize(c, 64<<10)
	var out []byte
	for at := 0; at < n; at += batch {
		if parts != nil && at%(n/10) == 0 {
			parts <- struct{}{}
		}
		out = out[:0]
		for i := at; i < at+batch; i++ {
			out = fmt.Appendf(out, "*5\r\n$11\r\nCL.THROTTLE\r\n$16\r\n%s%015d\r\n$2\r\n15\r\n$1\r\n1\r\n$%d\r\n%s\r\n", name, i, len(period), period)
		}
		if _, err := c.Write(out); err != nil {
			return allowed, refused, err
		}
		for range batch {
			line, err := r.ReadString('\n')
			if err != nil {
				return allowed, refused, err
			}
			switch {
			case strings.HasPrefix(line, "-OOM command not allowed"):
				refused++
				continue
			case line != "*5\r\n":
				return allowed, refused, fmt.Errorf("an unexpected reply: %q", line)
			}
			allowed++
			for range 5 {
				if _, err := r.ReadSlice('\n'); err != nil {
					return allowed, refused, err
				}
			}
		}
	}
	return allowed, refused, nil
}

// TestFloodOfNewKeysKeepsTheProcessWithinMaxmemory: clients call many unused keys, of which about
// half fit into maxmemory. The process stays within its bound, keys in use are decided correctly,
// and new ones are refused with Redis' error. After the flood has expired there is room again, and
// the memory is released.
func TestFloodOfNewKeysKeepsTheProcessWithinMaxmemory(t *testing.T) {
	keys, maxMemory, lasts := 2_000_000, int64(64<<20), 10*time.Second
	if effort.Long() {
		keys, maxMemory, lasts = 10_000_000, 256<<20, 40*time.Second
	}
	p := launch(t, t.TempDir(), nil, "--appendonly", "no", "--save", "", "--maxmemory", strconv.FormatInt(maxMemory, 10))
	c, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	defer c.Close()
	r := bufio.NewReader(c)
	hot := func(want string) {
		got, err := ask(r, c, "CL.THROTTLE hot 9 1 86400 1")
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(got, want), "%q does not begin with %q", got, want)
	}
	hot("0 10 9 ")

	// None of the keys may expire during the flood, however slow the machine.
	const probe = 50_000
	begun := time.Now()
	_, refusedAtOnce, err := flood(p.socket, "p", probe, "1", nil)
	require.NoError(t, err)
	require.Zero(t, refusedAtOnce)
	lasts = max(lasts, 3*time.Since(begun)*time.Duration(keys/probe))
	period := strconv.Itoa(int(lasts.Seconds()))

	var allowed, refused int
	done, parts := make(chan error), make(chan struct{}, 10) // the flood does not wait for the reader
	go func() {
		var err error
		allowed, refused, err = flood(p.socket, "k", keys, period, parts)
		done <- err
	}()
	for left := 8; left >= 0; left-- { // ten are admitted, however much else goes on
		<-parts
		hot(fmt.Sprintf("0 10 %d ", left))
	}
	require.NoError(t, <-done)
	hot("1 10 0 ")

	promised := maxMemory + maxMemory/10 + 64<<20
	_, most := resident(t, p.pid)
	t.Logf("%d keys made, %d refused; at most %.1f MiB of %.1f", allowed, refused, float64(most)/(1<<20), float64(promised)/(1<<20))
	require.LessOrEqual(t, most, promised)
	require.Equal(t, keys, allowed+refused)
	require.Positive(t, refused)
	require.Greater(t, int64(allowed), maxMemory/80, "refused while there was room")

	require.Eventually(t, func() bool {
		got, err := ask(r, c, "CL.THROTTLE new 9 1 60 1")
		return err == nil && strings.HasPrefix(got, "0 ")
	}, lasts+3*time.Minute, 100*time.Millisecond, "there is room once the flood has expired")
	require.Eventually(t, func() bool {
		now, _ := resident(t, p.pid)
		return now < maxMemory/4+64<<20
	}, 3*time.Minute, 100*time.Millisecond, "the memory is given back")
	hot("1 10 0 ")
	require.Eventually(t, func() bool {
		_, again, err := flood(p.socket, "j", 50_000, "60", nil)
		return err == nil && again == 0
	}, 3*time.Minute, 100*time.Millisecond, "there is room for many")
}
