//go:build real && unix

package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/redis"
)

// source is a keyspace whose effects go into a backlog, and a port to which Redis replicas
// connect.
type source struct {
	ks      *keyspace.Keyspace
	log     *persistence.Log
	backlog *replication.Backlog
	port    int
	skipped redis.Tally

	mu       sync.Mutex
	encoders []*redis.Encoder
	woken    *sync.Cond // its L is &mu
	wakes    int
	closed   bool
}

// Wrote and Gap implement persistence.Tap.
func (s *source) Wrote(piece []byte, _ uint64) {
	s.backlog.Write(piece)
	s.wake()
}

func (s *source) Gap() { panic("a gap") }

func (s *source) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes++
	s.woken.Broadcast()
}

func newSource(t *testing.T) *source {
	t.Helper()
	c := clock.NewSystem(clock.Options{})
	s := &source{ks: keyspace.New(keyspace.Options{Clock: c}), backlog: replication.NewBacklog(64<<20, 0)}
	s.woken = sync.NewCond(&s.mu)
	began := time.Now()
	s.log = persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: func() time.Duration { return time.Since(began) }, Clock: c.Record, Log: slog.New(slog.DiscardHandler),
	})
	s.ks.SetJournal(s.log)
	from := s.log.SetTap(s)
	s.backlog = replication.NewBacklog(64<<20, from)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port = l.Addr().(*net.TCPAddr).Port
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(conn, from) })
		}
	})
	stop := make(chan struct{})
	serving.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_ = s.log.NoteClock()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		_ = l.Close()
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.wake()
		serving.Wait()
	})
	return s
}

// serve handles the connection of a replica as a node does.
func (s *source) serve(conn net.Conn, from uint64) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		args, err := readCommand(in)
		if err != nil {
			return
		}
		switch strings.ToUpper(args[0]) {
		case "PING":
			_, _ = io.WriteString(conn, "+PONG\r\n")
		case "PSYNC":
			_, _ = fmt.Fprintf(conn, "+FULLRESYNC %040d 0\r\n", 7)
			s.pump(conn, in, from)
			return
		default:
			_, _ = io.WriteString(conn, "+OK\r\n")
		}
	}
}

// pump sends the output of the encoder, and passes acknowledgements to it.
func (s *source) pump(conn net.Conn, in *bufio.Reader, from uint64) {
	o := redis.EncoderOptions{Keyspace: s.ks, Tail: s.backlog, From: from, Wake: s.wake, Sleep: func(uint64) {}, Skipped: &s.skipped}
	copy(o.Mark[:], strings.Repeat("0123456789", 4))
	e, err := redis.NewEncoder(o)
	if err != nil {
		return
	}
	defer e.Closed()
	s.mu.Lock()
	s.encoders = append(s.encoders, e)
	s.mu.Unlock()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer conn.Close()
	reading.Go(func() {
		for {
			args, err := readCommand(in)
			if err != nil {
				s.wake()
				return
			}
			if len(args) > 2 && strings.EqualFold(args[1], "ack") {
				at, _ := strconv.ParseInt(args[2], 10, 64)
				e.Acknowledge(at)
				s.wake()
			}
		}
	})
	for {
		s.mu.Lock()
		wakes, closed := s.wakes, s.closed
		s.mu.Unlock()
		out, more, err := e.Fill(nil, 64<<10)
		if _, failed := conn.Write(out); closed || err != nil || failed != nil {
			return
		}
		for s.mu.Lock(); !more && s.wakes == wakes; {
			s.woken.Wait()
		}
		s.mu.Unlock()
	}
}

func readCommand(in *bufio.Reader) (args []string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if line[0] != '*' {
		if args = strings.Fields(line); len(args) == 0 {
			args = []string{""}
		}
		return args, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	for range n {
		head, failed := in.ReadString('\n')
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		size, _ := strconv.Atoi(strings.TrimSpace(head[1:]))
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		args = append(args, string(b[:size]))
	}
	return args, err
}

// change makes random changes to keys.
func (s *source) change(v *keyspace.Handle, r *rand.Rand, steps int) {
	for range steps {
		db := r.IntN(3)
		key := func(kind string) []byte { return fmt.Appendf(nil, "%s:%d", kind, r.IntN(40)) }
		word := func() []byte { return []byte(strings.Repeat(fmt.Sprint(r.IntN(40)), 1+r.IntN(200))) }
		now := v.Refresh()
		soon := now.Add(time.Hour + time.Duration(r.Int64N(1e15)))
		switch r.IntN(16) {
		case 0, 1, 2, 3:
			_ = v.Put(db, key("cell"), entry.Cell, nil, soon)
		case 4:
			_ = v.Put(db, key("short"), entry.Cell, nil, now.Add(time.Duration(r.Int64N(3e9))))
		case 5:
			_, _ = v.SetString(db, key("s"), word(), keyspace.SetOptions{Expiry: soon})
		case 6:
			_, _ = v.SetString(db, key("s"), word(), keyspace.SetOptions{Expiry: entry.NoExpiry})
		case 7:
			v.Delete(db, key([]string{"cell", "s", "l", "h", "z"}[r.IntN(5)]))
		case 8:
			_ = v.WriteList(db, key("l"), func(l *collection.List) error { return l.PushBack(word()) })
		case 9:
			_ = v.WriteHash(db, key("h"), func(h *collection.Hash) error { _, err := h.Set(word(), word()); return err })
		case 10:
			_ = v.WriteSet(db, key("set"), func(s *collection.Set) error { _, err := s.Add(word()); return err })
		case 11:
			_ = v.WriteSortedSet(db, key("z"), func(z *collection.SortedSet) error { _, err := z.Set(word(), r.NormFloat64()); return err })
		case 12:
			v.Rename(db, key("cell"), key("cell"), false)
		case 13:
			v.Persist(db, key("s"))
		case 14:
			_ = v.Put(db, key("window"), entry.Kind(17), nil, soon)
		case 15:
			if r.IntN(200) == 0 {
				v.Flush(db)
			}
		}
		_ = s.log.NoteClock() // passes on what was appended
	}
}

// held returns the contents of the keyspace in the form in which contents returns those of a
// Redis.
func (s *source) held(v *keyspace.Handle, db int) map[string]string {
	all := map[string]string{}
	v.Refresh()
	for cursor := uint64(0); ; {
		var keys []string
		cursor = v.Scan(db, cursor, 100, func(key []byte, _ entry.Kind) { keys = append(keys, string(key)) })
		for _, k := range keys {
			if e, there := v.Load(db, []byte(k)); there && e.Kind < entry.Kind(16) {
				all[k] = fmt.Sprint(e.Kind.Type(), " ", millisUp(s.ks.Clock(), e.Expiry), " ", held(&e))
			}
		}
		if cursor == 0 {
			return all
		}
	}
}

func millisUp(c clock.Clock, at limit.Instant) int64 {
	if at == entry.NoExpiry {
		return -1
	}
	return (int64(c.Civil(at)) + 999_999) / 1_000_000
}

func held(e *entry.Entry) any {
	switch e.Kind {
	case entry.Cell:
		return int64(entry.CellTAT(e))
	case entry.String:
		return string(e.Value)
	case entry.List:
		var l collection.List
		l.Load(e.Value)
		return l.Len()
	case entry.Hash:
		var h collection.Hash
		h.Load(e.Value)
		return h.Len()
	case entry.Set:
		var s collection.Set
		s.Load(e.Value)
		return s.Len()
	case entry.SortedSet:
		var z collection.SortedSet
		z.Load(e.Value)
		sum := 0.0
		for _, score := range z.Range(0, z.Len()) {
			sum += score
		}
		return fmt.Sprint(z.Len(), sum)
	}
	return nil
}

// copied returns the contents of a Redis.
func copied(t *testing.T, c *goredis.Client, db int) map[string]string {
	t.Helper()
	ctx := context.Background()
	conn := c.Conn()
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	require.NoError(t, conn.Select(ctx, db).Err())
	all := map[string]string{}
	keys, err := conn.Keys(ctx, "*").Result()
	require.NoError(t, err)
	for _, k := range keys {
		kind, value := conn.Type(ctx, k).Val(), any(nil)
		switch kind {
		case "string":
			value = conn.Get(ctx, k).Val()
		case "list":
			value = conn.LLen(ctx, k).Val()
		case "hash":
			value = conn.HLen(ctx, k).Val()
		case "set":
			value = conn.SCard(ctx, k).Val()
		case "zset":
			sum := 0.0
			for _, z := range conn.ZRangeWithScores(ctx, k, 0, -1).Val() {
				sum += z.Score
			}
			value = fmt.Sprint(conn.ZCard(ctx, k).Val(), sum)
		}
		at, err := conn.Do(ctx, "PEXPIRETIME", k).Int64()
		require.NoError(t, err)
		all[k] = fmt.Sprint(kind, " ", at, " ", value)
	}
	return all
}

// TestStockReplicaHasEveryKey: a stock Redis or Valkey that replicates from this server gets
// every key, and expired keys are removed. Its acknowledgements say what it has.
func TestStockReplicaHasEveryKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		s := newSource(t)
		v := s.ks.NewHandle()
		defer v.Close()
		r := rand.New(rand.NewPCG(3, 3))
		s.change(v, r, 3000)
		for i := range 200 { // more than one command can have
			require.NoError(t, v.WriteList(1, []byte("long"), func(l *collection.List) error {
				for j := range 100 {
					_ = l.PushBack(fmt.Append(nil, i, j))
				}
				return nil
			}))
		}
		replica := e.Single(t, storetest.Options{})
		replica.Do("REPLICAOF", "127.0.0.1", s.port)
		storetest.Await(t, "the link", func() error {
			s.change(v, r, 50)
			if replica.Info("replication")["master_link_status"] != "up" {
				return errors.New("down")
			}
			return nil
		})
		s.change(v, r, 3000)
		require.NoError(t, v.WriteList(1, []byte("long"), func(l *collection.List) error { return l.PushFront([]byte("first")) }))
		require.NoError(t, s.log.NoteClock())
		storetest.Await(t, "short keys to expire", func() error {
			v.Refresh()
			for db := range 3 {
				for k := range s.held(v, db) {
					if strings.HasPrefix(k, "short") {
						return errors.New(k)
					}
				}
			}
			return nil
		})
		want := s.backlog.End()
		storetest.Await(t, "its acknowledgement", func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := s.encoders[len(s.encoders)-1].Acked(); got < want {
				return fmt.Errorf("%d of %d", got, want)
			}
			return nil
		})
		for db := range 3 {
			storetest.Await(t, "what has expired to be deleted", func() error {
				if want, got := len(s.held(v, db)), dbSize(t, replica.Client, db); int64(want) != got {
					return fmt.Errorf("%d instead of %d", got, want)
				}
				return nil
			})
			requireEqual(t, s.held(v, db), copied(t, replica.Client, db))
		}
		require.NotZero(t, s.skipped.Counts()["counter"], s.skipped.Counts())
	})
}

// dbSize returns DBSIZE, which counts expired keys until they are deleted.
func dbSize(t *testing.T, c *goredis.Client, db int) int64 {
	t.Helper()
	conn := c.Conn()
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	require.NoError(t, conn.Select(context.Background(), db).Err())
	n, err := conn.DBSize(context.Background()).Result()
	require.NoError(t, err)
	return n
}

// TestEncoderKeepsNothingOfKeysThatAreGone: keys with a long time to live that are deleted,
// flushed or persisted take no memory afterwards.
func TestEncoderKeepsNothingOfKeysThatAreGone(t *testing.T) {
	s := newSource(t)
	v := s.ks.NewHandle()
	defer v.Close()
	o := redis.EncoderOptions{
		Keyspace: s.ks, Tail: s.backlog, From: s.backlog.End(), Wake: func() {}, Sleep: func(uint64) {}, Skipped: &s.skipped,
	}
	key := func(i int) []byte { return fmt.Append(nil, "lock:", i) }
	set := func(db, from, to int) {
		for i := from; i < to; i++ {
			_, err := v.SetString(db, key(i), []byte("v"), keyspace.SetOptions{Expiry: v.Refresh().Add(time.Hour)})
			require.NoError(t, err)
		}
	}
	set(0, 0, 100)
	e, err := redis.NewEncoder(o)
	require.NoError(t, err)
	defer e.Closed()
	send := func() {
		t.Helper()
		require.NoError(t, s.log.NoteClock())
		for more := true; more; {
			_, more, err = e.Fill(nil, 64<<10)
			require.NoError(t, err)
		}
		e.Acknowledge(1 << 40)
	}
	send()
	require.Equal(t, 100, e.KeptEndings())
	for i := range 10 {
		set(0, 100*i, 100*i+100)
		set(1, 100*i, 100*i+100)
		send()
		for j := range 100 {
			v.Delete(0, key(100*i+j))
			v.Persist(1, key(100*i+j))
		}
		send()
		require.Zero(t, e.KeptEndings())
	}
	set(0, 0, 100)
	set(1, 0, 10)
	send()
	require.Equal(t, 110, e.KeptEndings())
	v.Flush(0)
	send()
	require.Equal(t, 10, e.KeptEndings())
}
