package elements_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

const megabyte = 1_000_000

// TestRepliesOfLongValuesTakeNoMemory: replies of long values that clients do not read hold no
// copies, and the memory of a deleted value counts until the last reply that refers to it is
// gone.
func TestRepliesOfLongValuesTakeNoMemory(t *testing.T) {
	const elements, readers = 30, 40
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "64mb", "--write-timeout", "3600")
		c := s.Dial()
		empty := c.InfoNumber("used_memory_dataset")
		value := strings.Repeat("v", megabyte)
		for i := range elements {
			require.Equal(t, fmt.Sprintf(":%d\r\n", i+1), c.Do("RPUSH", "list", value))
		}
		require.Equal(t, inproc.OK, c.Do("SET", "long", value))
		full := c.InfoNumber("used_memory_dataset")
		commands := []string{"LRANGE list 0 -1", "GET long\r\nLRANGE list 0 -1", "MULTI\r\nLRANGE list 0 -1\r\nGET long\r\nEXEC", "EVAL \"return redis.call('LRANGE', 'list', 0, -1)\" 0"}
		var all []*inproc.Client
		for i := range readers {
			r := s.Dial()
			r.Send(commands[i%len(commands)] + "\r\n")
			all = append(all, r)
		}
		w.Settle()
		require.Greater(t, c.InfoNumber("total_net_output_bytes"), int64(readers*10_000), "replies have begun")
		require.Less(t, c.InfoNumber("mem_clients_normal"), int64(5*megabyte))
		require.Equal(t, full, c.InfoNumber("used_memory_dataset"))
		require.Equal(t, ":1\r\n", c.Do("DEL", "list"))
		require.Greater(t, c.InfoNumber("used_memory_dataset"), int64(elements*megabyte/3), "what is gone counts while it is referred to")
		for _, r := range all {
			require.NoError(t, r.Close())
		}
		w.Settle()
		require.Less(t, c.InfoNumber("used_memory_dataset"), empty+2*megabyte, "all is given up")
		require.Zero(t, c.InfoNumber("evicted_clients"))
	})
}

// TestRefusesToReplaceWhatIsReadUnderFullMemory: a value that replies refer to stays in memory
// when it is replaced, so a replacement needs memory and is refused when memory is full.
func TestRefusesToReplaceWhatIsReadUnderFullMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--write-timeout", "3600")
		c, r := s.Dial(), s.Dial()
		value := strings.Repeat("v", 8*megabyte/10)
		require.Equal(t, inproc.OK, c.Do("SET", "long", value))
		r.Send(strings.Repeat("GET long\r\n", 100))
		require.NotEmpty(t, r.Reply())
		w.Settle() // the next reply has begun, and waits for the client to read
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "1"))
		require.Contains(t, c.Do("SET", "long", value), "-OOM")
		require.NoError(t, r.Close())
		w.Settle()
		require.Equal(t, inproc.OK, c.Do("SET", "long", value), "nobody reads it")
	})
}

// TestRefusesToReplaceElementsThatAreReadUnderFullMemory: HSET and LSET are refused like SET.
// Calls that need no memory continue, as those of an existing limiter do.
func TestRefusesToReplaceElementsThatAreReadUnderFullMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--write-timeout", "3600")
		c := s.Dial()
		value := strings.Repeat("v", 8*megabyte/10)
		c.Do("HSET", "hash", "field", value, "free", value)
		c.Do("RPUSH", "list", value, value)
		for name, words := range map[string][]string{
			"HGET hash field": {"HSET", "hash", "field", value},
			"LINDEX list 0":   {"LSET", "list", "0", value},
		} {
			r := s.Dial()
			r.Send(strings.Repeat(name+"\r\n", 100))
			require.NotEmpty(t, r.Reply())
			w.Settle() // the next reply has begun, and waits for the client to read
			require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "1"))
			require.Equal(t, inproc.OOM, c.Do(words...), name)
			require.Equal(t, ":0\r\n", c.Do("HSET", "hash", "free", value), "nobody reads it")
			require.Equal(t, inproc.OK, c.Do("LSET", "list", "1", value), "nobody reads it")
			require.Equal(t, inproc.OOM, c.Do("LSET", "list", "1", value+"longer"))
			require.NoError(t, r.Close())
			w.Settle()
			require.NotEqual(t, inproc.OOM, c.Do(words...), "nobody reads it")
			require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "0"))
		}
	})
}

// TestLargeCopiedRepliesTakeTheirMemoryInTurn: readers of a large collection of short elements
// wait for each other, and no connection is closed because of the memory of its reply.
func TestLargeCopiedRepliesTakeTheirMemoryInTurn(t *testing.T) {
	const fields, size, readers = 20_000, 400, 8
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "64mb", "--write-timeout", "3600")
		c := s.Dial()
		for i := range fields / 1000 {
			words := []string{"HSET", "hash"}
			for j := range 1000 {
				words = append(words, strconv.Itoa(i*1000+j), strings.Repeat("v", size))
			}
			require.Equal(t, ":1000\r\n", c.Do(words...))
		}
		want := c.Do("HGETALL", "hash")
		require.Equal(t, 2*fields, strings.Count(want, "$"))
		var all sync.WaitGroup
		for range readers {
			r := s.Dial()
			r.Command("HGETALL", "hash")
			all.Go(func() { require.Equal(t, want, r.Reply(), "the reply is whole") })
		}
		all.Wait()
		require.Zero(t, c.InfoNumber("evicted_clients"))
		w.Settle()
		require.Less(t, c.InfoNumber("mem_clients_normal"), int64(megabyte), "all has left")
	})
}
