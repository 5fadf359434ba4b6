//go:build real && !race

// The race detector fattens the server, so that figures of memory mean nothing.

package main

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsKeepTheProcessWithinItsMemory repeatedly runs scripts that want too much memory, over
// several connections, and normal scripts in between. The process stays within the bound that
// maxmemory implies, the former get the same error each time, and the latter get their replies.
func TestScriptsKeepTheProcessWithinItsMemory(t *testing.T) {
	const maxMemory = int64(64 << 20)
	// On a busy machine a script may take seconds, and other clients would get BUSY meanwhile.
	p := launch(t, t.TempDir(), nil, "--appendonly", "no", "--save", "", "--maxmemory", strconv.FormatInt(maxMemory, 10),
		"--busy-reply-threshold", "600000")
	scripts := []string{
		"local t={} for i=1,1000 do t[i]=string.rep('x',16000000) end return #t",
		"local t={} for i=1,1000000 do t[i]={[1]=1,[65535]=1} t[i][65535]=2 end return #t",
		"local t={} for i=1,1000 do t[i]=redis.call('ECHO',string.rep('x',1000000)) end return #t",
		"local s,t=string.rep('x',4000000),{} for i=1,1000 do t[i]=string.format('%s%s%s',s,s,s) end return #t",
	}
	const good = "local s=string.rep('x',8000000) return #s"
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			c, err := net.Dial("unix", p.socket)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for n := range 6 {
				bad, err := ask(r, c, `EVAL "`+scripts[(i+n)%len(scripts)]+`" 0`)
				if err != nil || !strings.HasPrefix(bad, "-ERR not enough memory script: ") {
					t.Errorf("%q, %v", bad, err)
				}
				if got, err := ask(r, c, `EVAL "`+good+`" 0`); err != nil || got != "8000000" {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	promised := maxMemory + maxMemory/10 + 64<<20
	_, most := resident(t, p.pid)
	t.Logf("at most %.1f MiB of %.1f", float64(most)/(1<<20), float64(promised)/(1<<20))
	require.LessOrEqual(t, most, promised)
}

// TestScriptThatWritesMuchKeepsTheProcessWithinItsMemory: a script is not refused because of what
// it writes to the log, and does not make the process exceed the bound of maxmemory, whether it
// writes a few keys many times or as many keys as fit.
func TestScriptThatWritesMuchKeepsTheProcessWithinItsMemory(t *testing.T) {
	const maxMemory = int64(64 << 20)
	dir := t.TempDir()
	flags := []string{"--save", "", "--maxmemory", strconv.FormatInt(maxMemory, 10)}
	p := launch(t, dir, nil, flags...)
	c, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	defer c.Close()
	r := bufio.NewReader(c)
	for _, keys := range []string{"4", "15"} {
		got, err := ask(r, c, `EVAL "for i=1,100 do redis.call('SET', 'k'..i%ARGV[1], string.rep('x',3000000)) end return 100" 0 `+keys)
		require.NoError(t, err)
		require.Equal(t, "100", got)
	}
	promised := maxMemory + maxMemory/10 + 64<<20
	_, most := resident(t, p.pid)
	t.Logf("at most %.1f MiB of %.1f", float64(most)/(1<<20), float64(promised)/(1<<20))
	require.LessOrEqual(t, most, promised)

	p.kill()
	p = launch(t, dir, nil, flags...)
	c, err = net.Dial("unix", p.socket)
	require.NoError(t, err)
	defer c.Close()
	r = bufio.NewReader(c)
	got, err := ask(r, c, `EVAL "local n=0 for i=1,15 do n=n+redis.call('STRLEN', 'k'..i-1) end return n" 0`)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(15*3_000_000), got)
}
