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
)

func testRefusal(t *testing.T, f factory) {
	h := newLineHandler()
	var full atomic.Bool
	h.refuse = func() []byte {
		if full.Load() {
			return []byte("-ERR max number of clients reached\r\n")
		}
		return nil
	}
	lim := patientLimits()
	lim.Linger = 20 * time.Millisecond
	r := start(t, f, h, lim)
	old := r.dial()
	old.send("echo 1")
	old.expect("1")
	full.Store(true)
	// Clients that never read and never close must not keep others waiting.
	for range 100 {
		r.dial().send("echo into the void")
	}
	for range 200 {
		c := r.dial()
		_, _ = io.WriteString(c, "echo 1\necho 2\n") // may come too late
		got, err := io.ReadAll(c.r)
		require.NoError(t, err)
		require.Equal(t, "-ERR max number of clients reached\r\n", string(got))
		require.NoError(t, c.Close())
		old.send("echo still here")
		old.expect("still here")
	}
	full.Store(false)
	c := r.dial()
	c.send("echo 2")
	c.expect("2")
	require.EqualValues(t, 2, h.opened.Load())
	r.eventually(func() bool { r.pass(lim.Linger); return r.tr.Stats().Connections == 2 })
}

func testChurn(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	total := 2_000
	if _, ok := r.tr.(*overTLS); ok {
		total = 500 // a handshake takes milliseconds of a processor
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
	r.eventually(func() bool { return r.tr.Stats().Connections == 0 })
	require.EqualValues(t, total, r.tr.Stats().Accepted)
	r.await(func() bool { return r.h.closed.Load() == int64(total) })
	r.eventually(func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	r.eventually(func() bool { return openFiles(t) <= fds+5 })
}

// visit connects, says something, and leaves: politely, by a reset, or mid-word.
func visit(r *rig, worker, i int) error {
	nc, err := dial(r.tr, r.addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
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
		return (&client{Conn: nc}).tcp().SetLinger(0)
	case 1:
		_, err = io.WriteString(nc, "echo cut o")
	}
	return err
}

// openFiles counts the descriptors of this process, where the system tells.
func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/dev/fd")
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return len(entries)
}
