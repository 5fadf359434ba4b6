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

// Options determines how nodes are started.
type Options struct {
	// Args are additional arguments, such as "--maxmemory", "3mb".
	Args []string
	// OwnArgs returns further arguments that only one node has, such as the port of a front. It is called once for each node; nil
	// stands for none.
	OwnArgs func() []string
	// Password is the password of the user default, or "" for none.
	Password string
	// Users are lines of an ACL file, such as "user limiter on >secret ~cs:* +@read". If there are
	// any, they determine the users, and only the clients use Password.
	Users []string
	// TLS makes nodes listen only with TLS and these certificates, and require client certificates.
	// nil means that nodes do not use TLS.
	TLS *Certificates
	// NodeTimeout is the node timeout of a cluster, and the time after which sentinels consider a
	// node as down; 0 is 2 s. With a shorter one, a node on a busy machine may be considered as
	// down.
	NodeTimeout time.Duration
	// Front returns the address, such as the address of a proxy, at which clients and other nodes
	// of a cluster reach the node that will listen on addr. If Front is nil, the address is addr
	// itself.
	Front func(addr string) string
}

// Node is a process of an engine. Its methods fail the test if they do not succeed.
type Node struct {
	// Addr is the address of the node, which restarts do not change. Front is the address that the
	// node announces; see [Options.Front].
	Addr, Front string
	// Client is connected to the node as the user default.
	Client *redis.Client

	t       testing.TB
	engine  Engine
	options Options
	dir     string
	args    []string
	process *process
	said    log
}

// Single starts one node, without a cluster.
func (e Engine) Single(t testing.TB, o Options) *Node {
	t.Helper()
	return e.node(t, o)
}

// Replica starts a replica of master, which connects to the address from, or to master.Addr if from
// is "". It returns after the first resynchronization.
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

// node starts a process with the given options, and waits until it replies.
func (e Engine) node(t testing.TB, o Options) *Node {
	t.Helper()
	n := &Node{t: t, engine: e, options: o, dir: t.TempDir()}
	if o.OwnArgs != nil {
		n.options.Args = append(slices.Clone(o.Args), o.OwnArgs()...)
	}
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

// run starts the process, which ends with the test, and waits until it replies.
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

// arguments returns the command line of a node that stores nothing on disk.
func (n *Node) arguments() []string {
	o := n.options
	_, port, err := net.SplitHostPort(n.Addr)
	require.NoError(n.t, err)
	// Replicas need not wait for others to share the first snapshot, since there are none.
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

// slow is the maximum time for which a client waits for a reply. It is long because a machine that
// is suspended for some seconds is not a fault of the node.
const slow = 20 * time.Second

// ClientOptions returns the options of a client of this node that does not retry.
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

// TLSConfig returns the TLS configuration of a client of this node, or nil if the node does not use
// TLS.
func (n *Node) TLSConfig() *tls.Config {
	if n.options.TLS == nil {
		return nil
	}
	return n.options.TLS.Config()
}

// quiet drops the log of the client library, since tests expect most of its errors.
type quiet struct{}

// Printf implements the logger of the client library. It does nothing.
func (quiet) Printf(context.Context, string, ...any) {}

// URL returns the URL for the option store, with the front of the node.
func (n *Node) URL() string { return n.URLAt(n.Front) }

// URLAt returns the URL for the option store, with another address, such as the address of a proxy.
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

// Start starts the process again after Kill, with more arguments for this run. It does not wait
// until the process replies.
func (n *Node) Start(more ...string) {
	n.t.Helper()
	p, err := launch(n.engine.program, append(slices.Clone(n.args), more...), n.dir, &n.said)
	require.NoError(n.t, err)
	n.process = p
}

// Restart kills the process and starts it again, with more arguments for this run. Its files have
// only the configuration of a cluster. It returns when the node replies.
func (n *Node) Restart(more ...string) {
	n.t.Helper()
	n.Kill()
	n.Start(more...)
	n.AwaitReady()
}

// Follow starts the process again after Kill, as a replica of master. It does not wait until the
// process replies.
func (n *Node) Follow(master *Node) {
	n.t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(n.t, err)
	n.Start("--replicaof", host, port)
}

// Kill ends the process at once, as kill -9 does, and returns when it has ended.
func (n *Node) Kill() { n.process.kill() }

// Alive reports whether the process is running.
func (n *Node) Alive() bool {
	select {
	case <-n.process.ended:
		return false
	default:
		return true
	}
}

// Pause suspends the process, until Resume. Connections stay open and get no replies.
func (n *Node) Pause() {
	n.t.Helper()
	require.NoError(n.t, n.process.pause())
}

// Resume resumes a paused process.
func (n *Node) Resume() {
	n.t.Helper()
	require.NoError(n.t, n.process.resume())
}

// AwaitReady returns when the node replies and has loaded its files.
func (n *Node) AwaitReady() {
	n.t.Helper()
	err := await(func() error { return n.Client.Ping(n.t.Context()).Err() }, n.process.ended)
	require.NoError(n.t, err, "%s at %s: %s", n.engine.Name, n.Addr, n.said.tail())
}

// AwaitLink returns when the node is a replica with the state of its master.
func (n *Node) AwaitLink() {
	n.t.Helper()
	Await(n.t, n.Addr+" copies its master", func() error {
		if link := n.Info("replication")["master_link_status"]; link != "up" {
			return fmt.Errorf("its link is %q", link)
		}
		return nil
	})
}

// Role returns the role of the node as INFO shows it: master, slave, or "" if the node does not
// reply.
func (n *Node) Role() string { return n.Info("replication")["role"] }

// Info returns the fields of a section of INFO. It returns no fields if the node does not reply.
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

// Do runs a command and returns its reply. It fails the test if the reply is an error.
func (n *Node) Do(words ...any) any {
	n.t.Helper()
	reply, err := n.Client.Do(n.t.Context(), words...).Result()
	require.NoError(n.t, err, "%v at %s", words, n.Addr)
	return reply
}
