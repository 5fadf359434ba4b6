package storetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// Options are how nodes are started.
type Options struct {
	// Args are further words of the command line: "--maxmemory", "3mb".
	Args []string
	// Password is that of the user default.
	Password string
	// Users are lines of an ACL file: "user limiter on >secret ~cs:* +@read". The file
	// wins over Password.
	Users []string
	// TLS has nodes listen with these certificates only, and want one of clients.
	TLS *Certificates
	// NodeTimeout is that of a cluster, and how long a node must be away for sentinels; 0
	// is 2 s. Shorter ones take a busy machine for a dead one.
	NodeTimeout time.Duration
	// Front returns the address at which clients and other nodes of a cluster find the node
	// that will listen on addr: a proxy's. nil is addr itself.
	Front func(addr string) string
}

// Node is a process of an engine. Its methods fail the test when they fail.
type Node struct {
	// Addr is where it listens, the same through restarts. Front is where it says that it
	// does: see [Options.Front].
	Addr, Front string
	// Client is connected to it, as the user default.
	Client *redis.Client

	t       testing.TB
	engine  Engine
	options Options
	dir     string
	args    []string
	process *process
	said    log
}

// Single starts one node that is not in a cluster.
func (e Engine) Single(t testing.TB, o Options) *Node {
	t.Helper()
	return e.node(t, o)
}

// Replica starts a node that copies what master has, by way of the address from, or from
// master's own if that is "". It returns when the first copy is there.
func (e Engine) Replica(t testing.TB, o Options, master *Node, from string) *Node {
	t.Helper()
	if from == "" {
		from = master.Addr
	}
	host, port, err := net.SplitHostPort(from)
	require.NoError(t, err)
	o.Args = append(slices.Clone(o.Args), "--replicaof", host, port)
	if o.Password != "" {
		o.Args = append(o.Args, "--masterauth", o.Password)
	}
	n := e.node(t, o)
	n.AwaitLink()
	return n
}

// node starts a process with the options and waits until it answers.
func (e Engine) node(t testing.TB, o Options) *Node {
	t.Helper()
	n := &Node{t: t, engine: e, options: o, dir: t.TempDir()}
	n.Addr = net.JoinHostPort("127.0.0.1", freeport.Choose())
	n.Front = n.Addr
	if o.Front != nil {
		n.Front = o.Front(n.Addr)
	}
	n.args = n.arguments()
	n.Client = redis.NewClient(n.ClientOptions())
	n.run()
	return n
}

// run starts the process, for as long as the test lasts, and waits until it answers.
func (n *Node) run() {
	n.t.Helper()
	n.t.Cleanup(func() {
		_ = n.Client.Close()
		if n.process != nil {
			n.process.kill()
		}
		if n.t.Failed() {
			n.t.Logf("%s at %s said last:\n%s", n.engine.Name, n.Addr, n.said.tail())
		}
	})
	n.Start()
	n.AwaitReady()
}

// arguments is the command line of a node that keeps all in memory.
func (n *Node) arguments() []string {
	o := n.options
	_, port, err := net.SplitHostPort(n.Addr)
	require.NoError(n.t, err)
	// A first copy for replicas is made at once: there is nothing to wait for.
	args := []string{"--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}
	if o.TLS == nil {
		args = append(args, "--port", port)
	} else {
		args = append(args, "--port", "0", "--tls-port", port, "--tls-cert-file", o.TLS.Certificate, "--tls-key-file", o.TLS.Key,
			"--tls-ca-cert-file", o.TLS.Authority, "--tls-replication", "yes", "--tls-cluster", "yes")
	}
	if o.Password != "" && len(o.Users) == 0 {
		args = append(args, "--requirepass", o.Password)
	}
	if len(o.Users) > 0 {
		users := filepath.Join(n.dir, "users.acl")
		require.NoError(n.t, os.WriteFile(users, []byte(strings.Join(o.Users, "\n")+"\n"), 0o600))
		args = append(args, "--aclfile", users)
	}
	return append(args, o.Args...)
}

// slow is for how long a client waits for a reply. A machine that stands still for some seconds is
// no fault of the node.
const slow = 20 * time.Second

// ClientOptions are those of a client of this node that tries each thing once.
func (n *Node) ClientOptions() *redis.Options {
	redis.SetLogger(quiet{})
	o := &redis.Options{
		Addr: n.Addr, Password: n.options.Password, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, Protocol: 2,
		ReadTimeout: slow, WriteTimeout: slow, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if n.options.TLS != nil {
		o.TLSConfig = n.TLSConfig()
	}
	return o
}

// TLSConfig is what a client needs for a node with TLS, nil for one without.
func (n *Node) TLSConfig() *tls.Config {
	if n.options.TLS == nil {
		return nil
	}
	return n.options.TLS.Config()
}

// quiet drops what the client library logs: most of its errors are wanted here.
type quiet struct{}

// Printf implements the logger of the library.
func (quiet) Printf(context.Context, string, ...any) {}

// URL is the address of the node's front as --store takes it.
func (n *Node) URL() string { return n.URLAt(n.Front) }

// URLAt is the same with another address, a proxy's.
func (n *Node) URLAt(addr string) string { return storeURL(n.engine, n.options, addr) }

func storeURL(e Engine, o Options, addrs ...string) string {
	u := url.URL{Scheme: strings.TrimSuffix(e.Name, "-server"), Host: strings.Join(addrs, ",")}
	if o.TLS != nil {
		u.Scheme += "s"
		u.RawQuery = url.Values{"ca": {o.TLS.Authority}, "cert": {o.TLS.Certificate}, "key": {o.TLS.Key}}.Encode()
	}
	if o.Password != "" {
		u.User = url.UserPassword("", o.Password)
	}
	return u.String()
}

// Start starts the process again after Kill, and does not wait for it.
func (n *Node) Start(more ...string) {
	n.t.Helper()
	p, err := launch(n.engine.program, append(slices.Clone(n.args), more...), n.dir, &n.said)
	require.NoError(n.t, err)
	n.process = p
}

// Restart kills the process and starts it again with what it had on disk, which is nothing
// but the configuration of a cluster. It returns when the node answers.
func (n *Node) Restart(more ...string) {
	n.t.Helper()
	n.Kill()
	n.Start(more...)
	n.AwaitReady()
}

// Follow starts the process again after Kill as a replica of master, and does not wait for it.
func (n *Node) Follow(master *Node) {
	n.t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(n.t, err)
	n.Start("--replicaof", host, port)
}

// Kill ends the process at once, as kill -9 does.
func (n *Node) Kill() { n.process.kill() }

// Alive reports whether the process runs.
func (n *Node) Alive() bool {
	select {
	case <-n.process.ended:
		return false
	default:
		return true
	}
}

// Pause stops the process where it is: connections stay open and nothing answers.
func (n *Node) Pause() {
	n.t.Helper()
	require.NoError(n.t, n.process.pause())
}

// Resume lets a paused process go on.
func (n *Node) Resume() {
	n.t.Helper()
	require.NoError(n.t, n.process.resume())
}

// AwaitReady returns when the node answers and has loaded what it had on disk.
func (n *Node) AwaitReady() {
	n.t.Helper()
	err := await(func() error { return n.Client.Ping(n.t.Context()).Err() }, n.process.ended)
	require.NoError(n.t, err, "%s at %s: %s", n.engine.Name, n.Addr, n.said.tail())
}

// AwaitLink returns when the node is a replica that has copied its master.
func (n *Node) AwaitLink() {
	n.t.Helper()
	Await(n.t, n.Addr+" copies its master", func() error {
		if link := n.Info("replication")["master_link_status"]; link != "up" {
			return fmt.Errorf("its link is %q", link)
		}
		return nil
	})
}

// Role is what INFO calls it: master or slave.
func (n *Node) Role() string { return n.Info("replication")["role"] }

// Info has the fields of a section of INFO; none if the node does not answer.
func (n *Node) Info(section string) map[string]string {
	text, err := n.Client.Info(context.WithoutCancel(n.t.Context()), section).Result()
	fields := make(map[string]string)
	if err != nil {
		return fields
	}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Do runs a command and returns its reply.
func (n *Node) Do(words ...any) any {
	n.t.Helper()
	reply, err := n.Client.Do(n.t.Context(), words...).Result()
	require.NoError(n.t, err, "%v at %s", words, n.Addr)
	return reply
}
