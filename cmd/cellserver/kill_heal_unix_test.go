//go:build real && unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// insist consumes units of a key until the server is gone, also while calls are refused. It returns
// how many calls were allowed, and how many have an unknown outcome.
func insist(socket, key string) (acked, unknown int) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return 0, 0
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		got, err := ask(r, c, fmt.Sprintf("CL.THROTTLE %s %d 1 1000", key, burst))
		switch {
		case err != nil:
			return acked, unknown + 1
		case strings.HasPrefix(got, "0 "):
			acked++
		default:
			unknown++ // the first refused call may have taken effect
		}
	}
}

// TestKilledServersThatHealLoseNothing: killed while its disk fails now and then and the program
// writes new base files because of that, it has after a restart all acknowledged effects.
func TestKilledServersThatHealLoseNothing(t *testing.T) {
	programs.Need(t, "strace")
	if err := exec.Command("strace", "-o", "/dev/null", "true").Run(); err != nil {
		t.Skip("SKIP: no right to trace: ", err)
	}
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	faulty := []string{
		"strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync",
		"-e", "inject=fdatasync:error=EIO:when=9+7", // of each thread, and later than during a start
	}
	dir := t.TempDir()
	faults := func() int {
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		return bytes.Count(log, []byte("cannot be written; changes are refused"))
	}
	var book ledger
	for round := range rounds + 1 {
		prefix := faulty
		if round == rounds {
			prefix = nil
		}
		p := launch(t, dir, prefix, "--appendfsync", []string{"always", "everysec"}[round%2])
		book.audit(t, p.socket, round)
		wait := book.consume(p.socket, insist)
		if before := faults(); round%2 == 0 && round < rounds { // with always every call needs an fsync
			require.Eventually(t, func() bool { return faults() > before }, patience, 5*time.Millisecond)
		}
		<-time.After(time.Duration(400+131*round%700) * time.Millisecond) // a different moment in each round
		p.kill()
		wait()
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	healed := bytes.Count(log, []byte("healed=true"))
	t.Logf("%d kills, %d faults, %d times healed, %d acknowledged calls, 0 lost", rounds, faults(), healed, book.total())
}
