//go:build real && unix

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patient is a client that sends each call until it gets a reply, over as many connections as that takes.
type patient struct {
	*rand.Rand
	socket string
	name   string
	w      *wire
	made   int
	resent int
	// calls and units are those that its calls are charged in all.
	calls, units int64
}

// send sends words until there is a reply. again says that they were sent before.
func (p *patient) send(words string) (got string, again bool, err error) {
	for begun := time.Now(); time.Since(begun) < patience; {
		if p.w == nil {
			c, err := net.Dial("unix", p.socket)
			if err != nil { // the server is being started
				<-time.After(time.Millisecond)
				continue
			}
			p.w = &wire{c, bufio.NewReader(c)}
		}
		got, err := p.w.do(act{strings.Fields(words)})
		switch {
		case err != nil:
			_ = p.w.c.Close()
			p.w, again = nil, true
			p.resent++
		case strings.HasPrefix(got[0], "-LOADING"):
			<-time.After(time.Millisecond)
		default:
			return got[0], again, nil
		}
	}
	return "", again, fmt.Errorf("no reply to %s", words)
}

// expect sends words and wants the reply one, or other if they were sent before.
func (p *patient) expect(words, one, other string) error {
	got, again, err := p.send(words)
	if err == nil && !strings.HasPrefix(got, one) && (!again || !strings.HasPrefix(got, other)) {
		err = fmt.Errorf("%s (again %t): %s", words, again, got)
	}
	return err
}

// call makes a call with ID, or reserves an estimate, repeats that and settles it.
func (p *patient) call() error {
	p.made++
	id, estimate := fmt.Sprint(p.name, p.made), 1+p.Int64N(9)
	if p.IntN(3) == 0 {
		p.calls, p.units = p.calls+1, p.units+estimate
		return p.expect(fmt.Sprintf("RL.USE api k %d MEMBER %s ID %s", estimate, p.name, id), "0 ", "0 ")
	}
	reserve, actual := fmt.Sprintf("RL.USE api k %d RESERVE %s 3600", estimate, id), p.Int64N(12)
	settle := fmt.Sprintf("RL.COMMIT k %s %d POLICY api", id, actual)
	if p.IntN(4) == 0 {
		settle, actual = fmt.Sprintf("RL.CANCEL k %s POLICY api", id), 0
	} else {
		p.calls++
	}
	p.units += actual
	for _, words := range []string{reserve, reserve} {
		if err := p.expect(words, "0 ", "0 "); err != nil {
			return err
		}
	}
	if err := p.expect(settle, "1", "0"); err != nil {
		return err
	}
	return p.expect(settle, "0", "0")
}

// TestKilledServersChargeOnce: a server with appendfsync always is killed at any moment between reservations, their
// repetitions and what settles them. Clients send again what got no reply. In the end each call was charged once,
// and none was lost.
func TestKilledServersChargeOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs Unix sockets and signals")
	}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	server := launch(t, dir, nil, "--appendfsync", "always")
	one := func(words string) string {
		p := patient{socket: server.socket}
		got, _, err := p.send(words)
		require.NoError(t, err)
		_ = p.w.c.Close()
		return got
	}
	one("RL.POLICY SET api LIMITS SW 1000000000 86400 FIXED ANCHOR FIRST CALLS TB 500000 1 8640 CC 1000 300")
	var (
		busy    sync.WaitGroup
		stop    atomic.Bool
		clients [8]patient
		errs    [len(clients)]error
	)
	for i := range clients {
		p := &clients[i]
		p.Rand, p.socket, p.name = rand.New(rand.NewPCG(uint64(i), 38)), server.socket, fmt.Sprint("client", i, "-")
		busy.Go(func() {
			for !stop.Load() && errs[i] == nil {
				errs[i] = p.call()
			}
			if p.w != nil {
				_ = p.w.c.Close()
			}
		})
	}
	for round := range rounds {
		<-time.After(time.Duration(20+53*round%200) * time.Millisecond) // a different moment in each round
		if round%3 == 0 {
			one("BGREWRITEAOF")
		}
		server.kill()
		server = launch(t, dir, nil, "--appendfsync", "always")
	}
	stop.Store(true)
	busy.Wait()
	made, resent, calls, units := 0, 0, int64(0), int64(0)
	for i := range clients {
		require.NoError(t, errs[i])
		p := &clients[i]
		made, resent, calls, units = made+p.made, resent+p.resent, calls+p.calls, units+p.units
	}
	require.Positive(t, resent)
	require.Contains(t, one("RL.INFO api:k"), fmt.Sprintf(" used %d ", calls))
	require.Contains(t, one("RL.INFO api:k#2"), fmt.Sprintf(" used %d ", units))
	t.Logf("%d kills, %d calls, %d sent again, 0 lost and 0 charged twice", rounds, made, resent)
}
