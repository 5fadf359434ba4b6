package redis_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/rdb"
	"github.com/cellserver/cellserver/replication/redis"
)

// dumb is a connection to which every write fails.
type dumb struct{ net.Conn }

func (dumb) Write([]byte) (int, error) { return 0, errors.New("broken") }
func (dumb) Close() error              { return nil }

// endless selects one database after the other, each with a command of the same length.
type endless struct {
	n    int
	left []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		e.left = stream("SELECT " + strconv.Itoa(e.n%10))
		e.n++
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// TestDatabaseOfALinkThatBreaks: the next link begins in the database that was selected last,
// even if the acknowledgements failed while earlier commands were still applied.
func TestDatabaseOfALinkThatBreaks(t *testing.T) {
	h := &heard{}
	nothing := func() error { return nil }
	f := redis.New(redis.Options{
		Keyspace: newKeyspace(t), Runner: h, Begin: nothing, Whole: nothing, Log: slog.New(slog.DiscardHandler),
	})
	var copied bytes.Buffer
	w := rdb.NewWriter(&copied)
	require.NoError(t, w.Header())
	require.NoError(t, w.End())
	begin := fmt.Sprintf("$%d\r\n%s", copied.Len(), copied.Bytes())
	in := bufio.NewReader(io.MultiReader(strings.NewReader(begin), &endless{}))
	require.Error(t, f.Follow(t.Context(), dumb{}, in, "+FULLRESYNC "+strings.Repeat("a", 40)+" 0"))

	_, offset, _ := f.Current()
	applied := int(offset) / len(stream("SELECT 0"))
	require.Positive(t, applied)
	in = bufio.NewReader(bytes.NewReader(stream("SET k 1")))
	require.Error(t, f.Follow(t.Context(), dumb{}, in, "+CONTINUE"))
	require.Equal(t, []string{strconv.Itoa((applied-1)%10) + ":SET k 1"}, h.lines)
}

// told is a second connection over which one key is read, at offset 4711.
type told struct{ replies }

func (*told) Close() error { return nil }

func telling(text string) net.Conn {
	in := ":-2\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + role + dumpOf(text) + ":-1\r\n"
	return &told{replies{in: bytes.NewReader([]byte(in))}}
}

// TestValueOfAnotherHistory: a value was read from a primary ahead of its stream, and then the
// primary died. The value is read again from the replica that has taken over, which has another
// history.
func TestValueOfAnotherHistory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		value := make(chan string, 1)
		nothing := func() error { return nil }
		ks := newKeyspace(t)
		f := redis.New(redis.Options{
			Keyspace: ks, Runner: &heard{}, Begin: nothing, Whole: nothing, Log: slog.New(slog.DiscardHandler),
			Dial: func(context.Context) (net.Conn, error) { return telling(<-value), nil },
		})
		link := func(sent, reply, reads string, read int64) {
			t.Helper()
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			value <- reads
			ended := make(chan error)
			go func() {
				ended <- f.Follow(t.Context(), ours, bufio.NewReader(io.MultiReader(strings.NewReader(sent), ours)), reply)
			}()
			time.Sleep(redis.Period) // keys may have been read before there was one
			synctest.Wait()
			require.Equal(t, read, f.Figures().Read)
			require.NoError(t, theirs.Close())
			require.Error(t, <-ended)
		}
		begin := "$18\r\nREDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"
		link(begin+string(stream("CL.THROTTLE k 1 1 1")), "+FULLRESYNC "+strings.Repeat("a", 40)+" 0", "old", 1)
		_, offset, _ := f.Current()
		require.Less(t, offset, int64(4711))
		link(string(stream("SET k new")), "+CONTINUE "+strings.Repeat("b", 40), "new", 2)
		v := ks.NewHandle()
		defer v.Close()
		got, _ := v.Load(0, []byte("k"))
		require.Equal(t, "new", string(got.Value))
	})
}
