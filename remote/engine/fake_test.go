package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/remote/engine"
)

// fake is a node with answers chosen by a test, on a network of its own in a bubble.
type fake struct {
	t        *testing.T
	network  *simnet.Network
	addr     string
	listener net.Listener
	// answer returns the reply to a command; the first two words of the command are in lower case.
	// An empty reply is silence, and "close" closes the connection.
	answer   atomic.Pointer[func(words []string) string]
	accepted atomic.Int64
	done     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func newFake(t *testing.T, answer func(words []string) string) *fake {
	t.Helper()
	return newFakeOn(t, simnet.New(), answer)
}

// another is a second node on the network of f.
func (f *fake) another(answer func(words []string) string) *fake {
	f.t.Helper()
	return newFakeOn(f.t, f.network, answer)
}

// newFakeOn is newFake on a network.
func newFakeOn(t *testing.T, network *simnet.Network, answer func(words []string) string) *fake {
	t.Helper()
	l, err := network.Listen("127.0.0.1:0")
	require.NoError(t, err)
	f := &fake{t: t, network: network, addr: l.Addr().String(), listener: l}
	f.answer.Store(&answer)
	f.done.Go(f.accept)
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.done.Wait()
	})
	return f
}

// dial connects an engine on the network of f.
func (f *fake) dial(o *engine.Options) {
	o.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
		return f.network.Dial(ctx, "127.0.0.2", address)
	}
}

// engineAt and ready open an engine at f.
func (f *fake) engineAt(t *testing.T, change ...func(*engine.Options)) *engine.Engine {
	t.Helper()
	return engineAt(t, "redis://"+f.addr, append(change, f.dial)...)
}

func (f *fake) ready(t *testing.T, change ...func(*engine.Options)) *engine.Engine {
	t.Helper()
	return ready(t, "redis://"+f.addr, append(change, f.dial)...)
}

func (f *fake) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.accepted.Add(1)
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
		f.done.Go(func() { f.serve(c) })
	}
}

func (f *fake) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for in := bufio.NewReader(c); ; {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		reply := (*f.answer.Load())(words)
		if reply == "close" {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) ([]string, error) {
	line := func() (int, error) {
		s, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(s[1:]))
	}
	n, err := line()
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := line()
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		words[i] = string(b[:size])
	}
	words[0] = strings.ToLower(words[0])
	return words, nil
}

// healthy answers like a standalone node without keys.
func healthy(words []string) string {
	switch words[0] {
	case "time":
		now := time.Now()
		s, us := strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000)
		return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(s), s, len(us), us)
	case "info":
		return bulk("redis_version:7.0.0\r\ncluster_enabled:0\r\n")
	case "getrange":
		return "$0\r\n\r\n"
	case "evalsha", "eval":
		return ":1\r\n"
	}
	return "-ERR unknown command\r\n"
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// but answers the commands of that name differently, and all others like a healthy node.
func but(reply string, names ...string) func([]string) string {
	return func(words []string) string {
		for _, name := range names {
			// A probe reads the key that is the prefix.
			if words[0] == name && (name != "getrange" || words[1] != "cs:") {
				return reply
			}
		}
		return healthy(words)
	}
}
