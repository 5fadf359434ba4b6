package transport_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func testRefusal(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	var full atomic.Bool
	h.Refuse = func() []byte {
		if full.Load() {
			return []byte("-ERR max number of clients reached\r\n")
		}
		return nil
	}
	lim := transporttest.PatientLimits()
	lim.Linger = 20 * time.Millisecond
	r := transporttest.Start(t, f, h, lim)
	old := r.Dial()
	old.Send("echo 1")
	old.Expect("1")
	full.Store(true)
	// Clients that never read and never close must not delay others.
	for range 100 {
		r.Dial().Send("echo into the void")
	}
	for range 200 {
		c := r.Dial()
		_, _ = io.WriteString(c, "echo 1\necho 2\n") // the connection may be closed already
		got, err := io.ReadAll(c.Reader)
		require.NoError(t, err)
		require.Equal(t, "-ERR max number of clients reached\r\n", string(got))
		require.NoError(t, c.Close())
		old.Send("echo still here")
		old.Expect("still here")
	}
	full.Store(false)
	c := r.Dial()
	c.Send("echo 2")
	c.Expect("2")
	require.EqualValues(t, 2, h.Opened.Load())
	r.Eventually(func() bool { r.Pass(lim.Linger); return r.Transport.Stats().Connections == 2 })
}

func testChurn(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	total := 2_000
	if _, ok := r.Transport.(*transporttest.OverTLS); ok {
		total = 500 // a handshake takes milliseconds of processor time
	}
	const workers = 50
	goroutines, fds := runtime.NumGoroutine(), openFiles(t)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range total / workers {
				if err := visit(r, w, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	r.Eventually(func() bool { return r.Transport.Stats().Connections == 0 })
	require.EqualValues(t, total, r.Transport.Stats().Accepted)
	r.Await(func() bool { return r.Handler.Closed.Load() == int64(total) })
	r.Eventually(func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	r.Eventually(func() bool { return openFiles(t) <= fds+5 })
}

// visit connects, sends something, and leaves: by closing, by a reset, or in the middle of a
// command.
func visit(r *transporttest.Rig, worker, i int) error {
	nc, err := transporttest.Dial(r.Transport, r.Addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(transporttest.Patience)); err != nil {
		return err
	}
	word := fmt.Sprintf("%d-%d\n", worker, i)
	if _, err := io.WriteString(nc, "echo "+word); err != nil {
		return err
	}
	got := make([]byte, len(word))
	if _, err := io.ReadFull(nc, got); err != nil {
		return err
	}
	if string(got) != word {
		return fmt.Errorf("got %q for %q", got, word)
	}
	switch i % 3 {
	case 0:
		return (&transporttest.Client{Conn: nc}).TCP().SetLinger(0)
	case 1:
		_, err = io.WriteString(nc, "echo cut o")
	}
	return err
}

// openFiles returns the number of descriptors of this process, 0 if it is not known.
func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/dev/fd")
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return len(entries)
}
