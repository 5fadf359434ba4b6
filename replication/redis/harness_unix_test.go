//go:build real && unix

package redis_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication/redis"
	"github.com/cellserver/cellserver/server"
)

// throttle makes an engine without redis-cell replicate CL.THROTTLE verbatim: it is the new name
// of INCRBY. This server cannot know what the command does, and reads its key.
var throttle = []string{"--rename-command", "INCRBY", "CL.THROTTLE"}

// node is a running server, and a client of it.
type node struct {
	*server.Server
	client *goredis.Client
}

func startNode(t *testing.T) *node {
	t.Helper()
	c, err := config.Load([]string{"--collection-max-elements", "1000000"}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := server.New(c, server.Options{Clock: clock.NewSystem(clock.Options{}), Listeners: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = s.Run(context.Background()) })
	client := goredis.NewClient(&goredis.Options{Addr: l.Addr().String(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() {
		_ = client.Close()
		s.Stop()
		running.Wait()
		require.NoError(t, failed)
	})
	storetest.Await(t, "the node", func() error { return client.Ping(context.Background()).Err() })
	return &node{Server: s, client: client}
}

// runner runs commands in a session of a node.
type runner struct {
	session *inproc.Session
	db      int
}

func newRunner(t testing.TB, s *server.Server) *runner {
	t.Helper()
	session, refused := (&inproc.Server{Server: s}).Open(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
	require.NotNil(t, session, string(refused))
	return &runner{session: session}
}

// Run implements redis.Runner.
func (r *runner) Run(db int, args [][]byte) error {
	if db != r.db {
		if _, err := r.session.Do("SELECT", strconv.Itoa(db)); err != nil {
			return err
		}
		r.db = db
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	reply, err := r.session.Do(words...)
	if err != nil {
		return err
	}
	if reply[0] == '-' || words[0] == "EXEC" && bytes.Contains(reply, []byte("\r\n-")) {
		return errors.New(string(reply))
	}
	return nil
}

// dial runs the handshake of a replica with a primary, and returns the answer to PSYNC.
func dial(addr, replid string, offset int64, port int, diskless bool) (net.Conn, *bufio.Reader, string, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, nil, "", err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	capa := "REPLCONF capa psync2\r\n"
	if diskless {
		capa = "REPLCONF capa eof capa psync2\r\n"
	}
	for _, line := range []string{"PING\r\n", fmt.Sprintf("REPLCONF listening-port %d\r\n", port), capa} {
		if _, err := conn.Write([]byte(line)); err != nil {
			return nil, nil, "", err
		}
		if _, err := in.ReadSlice('\n'); err != nil {
			return nil, nil, "", err
		}
	}
	if _, err := fmt.Fprintf(conn, "PSYNC %s %d\r\n", replid, offset); err != nil {
		return nil, nil, "", err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, nil, "", err
		}
		if line = strings.TrimSpace(line); line != "" {
			return conn, in, line, nil
		}
	}
}

// following is a node that follows an engine.
type following struct {
	*redis.Follower
	node *node
	// port is the listening port that it announces.
	port int
	// links counts the answers to PSYNC.
	mu    sync.Mutex
	conn  net.Conn
	links map[string]int
	last  error
	// wholes counts complete copies. again counts the links that ended with ErrResync.
	wholes int
	again  atomic.Int64
	// leave stops following.
	leave func()
}

// follow makes a node follow an engine until the test ends. It reconnects whenever the link is
// cut.
func follow(t *testing.T, n *node, addr string, port int, diskless bool) *following {
	t.Helper()
	r := newRunner(t, n.Server)
	f := &following{node: n, port: port, links: map[string]int{}}
	f.Follower = redis.New(redis.Options{
		Keyspace: n.Keyspace(), Runner: r, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Dial:  func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", addr) },
		Begin: func() error { return r.Run(0, [][]byte{[]byte("FLUSHALL")}) },
		Whole: func() error { f.wholes++; return nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			f.link(ctx, addr, diskless)
		}
	})
	f.leave = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(f.leave)
	return f
}

// link follows over one connection.
func (f *following) link(ctx context.Context, addr string, diskless bool) {
	replid, offset, _ := f.Current()
	if replid == "" {
		replid, offset = "?", -2
	}
	conn, in, reply, err := dial(addr, replid, offset+1, f.port, diskless)
	f.mu.Lock()
	if f.last = err; err == nil {
		f.conn = conn
		f.links[strings.Fields(reply)[0]]++
	}
	f.mu.Unlock()
	if err == nil {
		before := f.wholes
		err = f.Follow(ctx, conn, in, reply)
		if id, _, _ := f.Current(); id == "" && (replid != "?" || f.wholes > before) {
			f.again.Add(1)
		}
		f.mu.Lock()
		f.last = err
		f.mu.Unlock()
	}
}

// cut closes the connection to the primary.
func (f *following) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		_ = f.conn.Close()
	}
}

func (f *following) why() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("links %v, last %v, figures %+v", f.links, f.last, f.Figures())
}

// awaitSettled waits until everything that the engine has done is stored.
func (f *following) awaitSettled(t *testing.T, e *storetest.Node) {
	t.Helper()
	storetest.Await(t, "the offset", func() error {
		info := e.Info("replication")
		want, err := strconv.ParseInt(info["master_repl_offset"], 10, 64)
		replid, at, settled := f.Current()
		if err != nil || at != want || !settled || replid != info["master_replid"] {
			return fmt.Errorf("%s %d (settled %t) instead of %s %d: %s", replid, at, settled, info["master_replid"], want, f.why())
		}
		return nil
	})
}

// awaitLong waits until no key of the engine will expire soon.
func awaitLong(t *testing.T, e *storetest.Node, databases int) {
	t.Helper()
	storetest.Await(t, "keys to expire", func() error {
		for db := range databases {
			for k, v := range contents(t, e.Client, db) {
				var kind string
				var at int64
				if n, _ := fmt.Sscanf(v, "%s until %d", &kind, &at); n == 2 && at > 0 && at < time.Now().Add(time.Minute).UnixMilli() {
					return errors.New(k)
				}
			}
		}
		return nil
	})
}

// contents reads every key of a database by commands. It omits the expiries of redis-cell's keys,
// because these live to their TAT here.
func contents(t *testing.T, c *goredis.Client, db int) map[string]string {
	t.Helper()
	ctx := context.Background()
	conn := c.Conn()
	defer conn.Close() //nolint:errcheck // nothing is sent any more
	require.NoError(t, conn.Select(ctx, db).Err())
	all := map[string]string{}
	for cursor := uint64(0); ; {
		keys, next, err := conn.Scan(ctx, cursor, "*", 1000).Result()
		require.NoError(t, err)
		for _, k := range keys {
			if text, there := content(t, ctx, conn, k); there {
				all[k] = text
			}
		}
		if cursor = next; cursor == 0 {
			return all
		}
	}
}

func content(t *testing.T, ctx context.Context, c *goredis.Conn, k string) (text string, there bool) {
	t.Helper()
	kind, err := c.Type(ctx, k).Result()
	require.NoError(t, err)
	var value string
	switch kind {
	case "none", "stream":
		return "", false
	case "string":
		value, err = c.Get(ctx, k).Result()
	case "list":
		var all []string
		all, err = c.LRange(ctx, k, 0, -1).Result()
		value = fmt.Sprintf("%q", all)
	case "set":
		var all []string
		all, err = c.SMembers(ctx, k).Result()
		slices.Sort(all)
		value = fmt.Sprintf("%q", all)
	case "hash":
		var all map[string]string
		all, err = c.HGetAll(ctx, k).Result()
		keys := slices.Sorted(maps.Keys(all))
		for _, f := range keys {
			value += fmt.Sprintf("%q=%q ", f, all[f])
		}
	case "zset":
		var all []goredis.Z
		all, err = c.ZRangeWithScores(ctx, k, 0, -1).Result()
		value = fmt.Sprintf("%v", all)
	}
	if errors.Is(err, goredis.Nil) {
		return "", false // it has expired meanwhile
	}
	require.NoError(t, err, k)
	if strings.HasPrefix(k, "cell:") {
		return kind + " " + value, true
	}
	at, err := c.Do(ctx, "PEXPIRETIME", k).Int64()
	require.NoError(t, err)
	return fmt.Sprintf("%s until %d %s", kind, at, value), true
}

// requireEqual compares all keys of two databases.
func requireEqual(t *testing.T, want, got map[string]string) {
	t.Helper()
	var wrong []string
	for k, v := range want {
		if w, there := got[k]; !there || w != v {
			wrong = append(wrong, fmt.Sprintf("%q: want %.200s, got %.200s", k, v, w))
		}
	}
	for k, v := range got {
		if _, there := want[k]; !there {
			wrong = append(wrong, fmt.Sprintf("%q: want nothing, got %.200s", k, v))
		}
	}
	slices.Sort(wrong)
	require.Empty(t, wrong, "%d of %d", len(wrong), len(want))
}
