package chaos_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/slidingwindow"
)

// asWorker has this program ask for several limits at once until it is killed, of the store
// whose URL it has.
const asWorker = "CHAOS_WORKER"

func TestMain(m *testing.M) {
	if url := os.Getenv(asWorker); url != "" {
		askForSeveral(url)
		return
	}
	os.Exit(m.Run())
}

// keysOfSeveral are of different slots. The last is a limit that refuses many calls.
var keysOfSeveral = []string{"cell-0", "fixed-0", "greedy-0", "brisk"}

// several asks for one unit of each.
func several() *decide.Ask {
	a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(keysOfSeveral))}
	for _, key := range keysOfSeveral {
		c := decide.Clause{Key: []byte(key)}
		if key == "brisk" {
			c.Window = &slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 20, Window: 50 * time.Millisecond, Quantity: 1, First: true}
		} else {
			switch one := familyOf(key)(key, 1); one.Family {
			case decide.Cell:
				c.Quota, c.Quantity = &one.Quota, 1
			case decide.Window:
				c.Window = &one.Window
			default:
				c.Bucket = &one.Bucket
			}
		}
		a.Clauses = append(a.Clauses, c)
	}
	return a
}

// The answers that a worker tells, a letter each, before it asks again.
const wasAdmitted, wasRefused, wasFailed = 'a', 'r', 'f'

// askForSeveral is a worker.
func askForSeveral(url string) {
	s, err := remote.Open(remote.Options{URL: url, Prefix: prefix})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		told := byte(wasAdmitted)
		switch a := submit(s, several()); {
		case a.Err != nil:
			told = wasFailed
			time.Sleep(time.Millisecond) // it is told at once while nothing is asked
		case a.Refused:
			told = wasRefused
		}
		if _, err := os.Stdout.Write([]byte{told}); err != nil {
			os.Exit(1)
		}
	}
}

// worker is a process that asks, and what it has told.
type worker struct {
	cmd   *exec.Cmd
	told  map[byte]int64
	begun chan struct{} // closed when it has told something that was decided
	ended chan struct{}
}

func startWorker(t *testing.T, url string) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(os.Args[0]), told: map[byte]int64{}, begun: make(chan struct{}), ended: make(chan struct{})} //nolint:gosec // this program again
	w.cmd.Env = append(os.Environ(), asWorker+"="+url)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	t.Cleanup(w.kill)
	go w.listen(out)
	return w
}

func (w *worker) listen(out io.Reader) {
	defer close(w.ended)
	var once sync.Once
	for r := bufio.NewReader(out); ; {
		b, err := r.ReadByte()
		if err != nil {
			return
		}
		w.told[b]++
		if b != wasFailed {
			once.Do(func() { close(w.begun) })
		}
	}
}

// kill ends the worker with kill -9, and returns when all that it has told is counted.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // it may have been killed before
	<-w.ended
	_ = w.cmd.Wait() // it was killed
}

// TestKilledServersLeaveAtMostTheirCallOfSeveralCharged kills servers that ask for limits in
// several slots: each leaves at most the call charged that was under way.
func TestKilledServersLeaveAtMostTheirCallOfSeveralCharged(t *testing.T) {
	skipShort(t)
	c := storetest.Best(t).Cluster(t, 3, 0, storetest.Options{})
	require.NotEqual(t, c.SlotOf(prefix+keysOfSeveral[0]), c.SlotOf(prefix+keysOfSeveral[1]))
	const workers = 4
	kills := scaled(12, 100)
	told := map[byte]int64{}
	var all []*worker
	for range workers {
		all = append(all, startWorker(t, c.URL()))
	}
	for range kills {
		i := rand.IntN(workers)
		<-all[i].begun
		time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond)))) // anywhere in a call
		all[i].kill()
		for b, n := range all[i].told {
			told[b] += n
		}
		all[i] = startWorker(t, c.URL())
	}
	for _, w := range all {
		<-w.begun
		w.kill()
		for b, n := range w.told {
			told[b] += n
		}
	}
	s := open(t, remote.Options{URL: c.URL()})
	client := clientOf(t, c)
	most := told[wasAdmitted] + told[wasFailed] + int64(kills+workers)
	for _, key := range keysOfSeveral[:3] {
		raw, err := client.Get(t.Context(), prefix+key).Bytes()
		require.NoError(t, err)
		is := charged(t, raw, s.Now())
		t.Logf("%s: %d charged, %d admitted, %d refused, %d failed, %d kills", key, is, told[wasAdmitted], told[wasRefused], told[wasFailed], kills+workers)
		require.GreaterOrEqual(t, is, told[wasAdmitted], key)
		require.LessOrEqual(t, is, most, key)
	}
	require.Positive(t, told[wasAdmitted])
	require.Positive(t, told[wasRefused])
}
