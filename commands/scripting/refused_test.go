package scripting_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// refusedScript is a script and its reply on a server that may not write. %s stands for the error
// itself.
type refusedScript struct {
	source, reply string
	keys          []string
}

// refusedScripts returns scripts whose replies are byte for byte those of Redis 7.0.15, with a
// full disk and beyond maxmemory.
func refusedScripts(e string) []refusedScript {
	inside := func(sha string) string { return "-" + e + " script: " + sha + ", on @user_script:1.\r\n" }
	return []refusedScript{
		{"return redis.call('SET',KEYS[1],'v')", inside("948fb05a800633cd285d7440e4d64ca534f7c396"), []string{"a"}},
		{"return redis.call('SET',KEYS[1],'v')", inside("948fb05a800633cd285d7440e4d64ca534f7c396"), []string{"k"}},
		{"local r=redis.pcall('SET',KEYS[1],'v') return r.err", inproc.Bulk(e), []string{"a"}},
		{"redis.pcall('SET',KEYS[1],'v') return redis.call('GET',KEYS[1])", inproc.Bulk("1"), []string{"k"}},
		{"return redis.call('GET',KEYS[1])", inproc.Bulk("1"), []string{"k"}},
		{"for i=1,100 do redis.call('SET','x'..i,1) end return 1", inside("f24fb71b88c311b39910a33b1496624c8336814f"), nil},
		{"#!lua\nreturn redis.call('SET',KEYS[1],'v')", "-" + e + "\r\n", []string{"a"}},
		{"#!lua\nreturn redis.call('GET',KEYS[1])", "-" + e + "\r\n", []string{"k"}},
		{"#!lua flags=no-writes\nreturn redis.call('GET',KEYS[1])", inproc.Bulk("1"), []string{"k"}},
		{"return redis.call('PUBLISH','c','m')", ":0\r\n", nil},
		{"redis.pcall('INCR',KEYS[1]) redis.pcall('SET',KEYS[2],'v') return redis.call('EXISTS',KEYS[2])", ":0\r\n", []string{"k", "a"}},
	}
}

func (r refusedScript) call() []string {
	return append([]string{"EVAL", r.source, fmt.Sprint(len(r.keys))}, r.keys...)
}

// requireRefused runs the scripts and checks that they leave no key but k.
func requireRefused(t *testing.T, c *inproc.Client, scripts []refusedScript) {
	t.Helper()
	for _, s := range scripts {
		require.Equal(t, s.reply, c.Do(s.call()...), "%q %v", s.source, s.keys)
		c.Do("MULTI")
		c.Do(s.call()...)
		require.Equal(t, "*1\r\n"+s.reply, c.Do("EXEC"), "%q %v in a transaction", s.source, s.keys)
	}
	require.Equal(t, inproc.Bulk("1"), c.Do("GET", "k"))
	require.Equal(t, ":1\r\n", c.Do("DBSIZE"))
}

// TestScriptsOnAFullDisk: on a full disk a script that writes is refused with the error of Redis
// and changes nothing, and a script that reads is answered. Once there is space, all scripts work
// again.
func TestScriptsOnAFullDisk(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--appendonly", "yes")
		c := s.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "k", "1"))
		s.FillDisk(true)
		const why = "MISCONF Errors writing to the AOF file: No space left on device"
		// The write that meets the full disk has run: its error says that it may take effect.
		require.Equal(t, "-"+why+"; the outcome of this command is unknown\r\n", c.Do("SET", "k", "1"))
		require.Equal(t, "-"+why+"\r\n", c.Do("SET", "k", "2"), "from then on nothing is changed")
		scripts := append(refusedScripts(why), refusedScript{
			"redis.call('DEL',KEYS[1]) return 1",
			"-" + why + " script: 773c7c8837dac651188e132b71226339fc075cc0, on @user_script:1.\r\n",
			[]string{"k"},
		})
		requireRefused(t, c, scripts)
		require.Equal(t, "*1\r\n$1\r\nk\r\n", c.Do("KEYS", "*"), "what takes longer and only looks is answered")
		const long = "for i=1,300000 do redis.call('GET',KEYS[1]) end return redis.call('GET',KEYS[1])"
		require.Equal(t, inproc.Bulk("1"), c.Do("EVAL", long, "1", "k"))
		s.FillDisk(false)
		w.Until("healed", 100*time.Millisecond, time.Minute, func() bool { return c.Info("aof_last_write_status") == "ok" })
		require.Equal(t, inproc.OK, c.Do(scripts[0].call()...))
	})
}

// TestScriptsInFullMemory: if memory is full when a script begins, its first write is refused, so
// that the script is not stopped between two writes.
func TestScriptsInFullMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "k", "1"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "1"))
		requireRefused(t, c, append(refusedScripts("OOM command not allowed when used memory > 'maxmemory'."), refusedScript{
			"redis.call('PEXPIRE',KEYS[1],100000) redis.call('PERSIST',KEYS[1]) return redis.call('GET',KEYS[1])", inproc.Bulk("1"), []string{"k"},
		}))
		require.Equal(t, inproc.OK, c.Do("EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET',KEYS[1],1)", "1", "k"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "0"))
		require.Equal(t, inproc.Five(0, 16, 15, -1, 20), c.Do("CL.THROTTLE", "limiter", "15", "30", "600"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "1"))
		require.Equal(t, inproc.Five(0, 16, 14, -1, 40), c.Do("EVAL", "return redis.call('CL.THROTTLE',KEYS[1],15,30,600)", "1", "limiter"))
	})
}
