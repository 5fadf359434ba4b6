//go:build real && unix

package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/redis"
)

// TestEngineFailsOverToUs: FAILOVER TO this server, under load, hands over without loss. The
// engine pauses, sees this server's acknowledgement, sends its offset, and becomes its replica
// with equal keys.
func TestEngineFailsOverToUs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		primary := e.Single(t, storetest.Options{Args: throttle})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var began, added [500]int64 // TATs, and charges that were acknowledged
		for i := range began {
			at := time.Now().Add(time.Hour + time.Duration(i)*time.Second)
			primary.Do("SET", fmt.Sprint("cell:", i), at.UnixNano(), "PXAT", at.UnixMilli())
			began[i] = at.UnixNano()
			primary.Client.RPush(ctx, fmt.Sprint("l:", i%20), i)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		n := startNode(t)
		f := follow(t, n, primary.Addr, l.Addr().(*net.TCPAddr).Port, true)
		f.awaitSettled(t, primary)

		var charges atomic.Int64
		var load, serving sync.WaitGroup
		for i := range 4 {
			load.Go(func() { throttleUntilReadOnly(ctx, primary, i, &added, &charges) })
		}
		promoted := make(chan string, 1)
		serving.Go(func() { promoted <- takeOver(l, f) })
		defer func() {
			cancel()
			_ = l.Close()
			_ = primary.Client.Close()
			serving.Wait()
			load.Wait()
		}()
		storetest.Await(t, "some load", func() error {
			if n := charges.Load(); n < 1000 {
				return fmt.Errorf("%d charges", n)
			}
			// Redis needs an acknowledgement that was sent after its child has ended.
			if replica := primary.Info("replication")["slave0"]; !strings.Contains(replica, "state=online") {
				return errors.New(replica)
			}
			return nil
		})
		primary.Do("FAILOVER", "TO", "127.0.0.1", l.Addr().(*net.TCPAddr).Port, "TIMEOUT", 30000)
		require.Empty(t, <-promoted, f.why())
		load.Wait()
		storetest.Await(t, "the old primary to be our replica", func() error {
			if info := primary.Info("replication"); info["role"] != "slave" || info["master_link_status"] != "up" {
				return errors.New(info["role"])
			}
			return nil
		})
		for i := range added {
			tat, err := n.client.Get(ctx, fmt.Sprint("cell:", i)).Int64()
			require.NoError(t, err)
			require.Equal(t, began[i]+added[i]*charge, tat, "cell:%d was charged %d times", i, added[i])
		}
		require.Equal(t, contents(t, n.client, 0), contents(t, primary.Client, 0))
	})
}

// charge is what one call adds to a TAT.
const charge = 1000

// throttleUntilReadOnly charges every fourth key, beginning at from, until the engine is a
// replica.
func throttleUntilReadOnly(ctx context.Context, e *storetest.Node, from int, added *[500]int64, charges *atomic.Int64) {
	c := goredis.NewClient(&goredis.Options{Addr: e.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: time.Minute})
	defer c.Close() //nolint:errcheck // nothing is sent any more
	for r := rand.New(rand.NewPCG(1, uint64(from))); ; {
		i := r.IntN(125)*4 + from
		switch err := c.Do(ctx, "CL.THROTTLE", fmt.Sprint("cell:", i), charge).Err(); {
		case err == nil:
			added[i]++
			charges.Add(1)
		default: // READONLY, because it is a replica now
			return
		}
	}
}

// takeOver waits for PSYNC with FAILOVER, and promotes: it serves the engine from then on. It
// returns an error text.
func takeOver(l net.Listener, f *following) string {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err.Error()
		}
		in := bufio.NewReader(conn)
		for {
			args, err := readCommand(in)
			if err != nil {
				break
			}
			if !strings.EqualFold(args[0], "psync") {
				_, _ = io.WriteString(conn, map[bool]string{true: "+PONG\r\n", false: "+OK\r\n"}[strings.EqualFold(args[0], "ping")])
				continue
			}
			replid, offset, settled := f.Current()
			if len(args) != 4 || args[1] != replid || args[2] != strconv.FormatInt(offset+1, 10) || !settled {
				_ = conn.Close()
				return fmt.Sprintf("%q while at %s %d, settled %t", args, replid, offset, settled)
			}
			f.leave()
			_, _ = fmt.Fprintf(conn, "+FULLRESYNC %040d 0\r\n", 9)
			go serveStill(conn, f)
			return ""
		}
		_ = conn.Close()
	}
}

// serveStill serves a replica of a keyspace that does not change, until the replica disconnects.
func serveStill(conn net.Conn, f *following) {
	defer conn.Close()
	o := redis.EncoderOptions{Keyspace: f.node.Keyspace(), Tail: replication.NewBacklog(1<<20, 0), Wake: func() {}, Sleep: func(uint64) {}, Skipped: &redis.Tally{}}
	copy(o.Mark[:], strings.Repeat("0123456789", 4))
	e, err := redis.NewEncoder(o)
	if err != nil {
		return
	}
	defer e.Closed()
	for more := true; more && err == nil; {
		var out []byte
		if out, more, err = e.Fill(nil, 64<<10); err == nil {
			_, err = conn.Write(out)
		}
	}
	_, _ = io.Copy(io.Discard, conn)
}
