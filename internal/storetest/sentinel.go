package storetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// MasterName is the name that the sentinels have for the node that they watch.
const MasterName = "limits"

// Sentinels has three sentinels, the master that they watch, and its replicas.
type Sentinels struct {
	Master    *Node // the master at the start, even after a failover
	Replicas  []*Node
	Sentinels []*Node
	t         testing.TB
}

// Sentinels starts a master, the given number of replicas, and three sentinels with a quorum of
// two. It returns when the sentinels know each other and all replicas. It does not support
// Options.Front.
func (e Engine) Sentinels(t testing.TB, replicas int, o Options) *Sentinels {
	t.Helper()
	if o.NodeTimeout == 0 {
		o.NodeTimeout = 2 * time.Second
	}
	if o.Password != "" {
		// The master needs the password for replication, too, since it is a replica after a
		// restart.
		o.Args = append(o.Args, "--masterauth", o.Password)
	}
	s := &Sentinels{t: t, Master: e.node(t, o)}
	for range replicas {
		s.Replicas = append(s.Replicas, e.Replica(t, o, s.Master, ""))
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, e.sentinel(t, o, s.Master))
	}
	for _, n := range s.Sentinels {
		Await(t, "the sentinels know each other", func() error {
			line := n.Info("sentinel")["master0"]
			if !strings.Contains(line, fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=3", s.Master.Addr, replicas)) {
				return errors.New(line)
			}
			return nil
		})
	}
	return s
}

// sentinel starts a sentinel that watches master, and waits until it replies.
func (e Engine) sentinel(t testing.TB, o Options, master *Node) *Node {
	t.Helper()
	n := &Node{t: t, engine: e, dir: t.TempDir(), options: Options{TLS: o.TLS}}
	port := freeport.Choose()
	n.Addr = net.JoinHostPort("127.0.0.1", port)
	n.Front = n.Addr
	host, masterPort, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	lines := []string{"bind 127.0.0.1"}
	if o.TLS == nil {
		lines = append(lines, "port "+port)
	} else {
		lines = append(lines, "port 0", "tls-port "+port, "tls-cert-file "+o.TLS.Certificate, "tls-key-file "+o.TLS.Key,
			"tls-ca-cert-file "+o.TLS.Authority, "tls-replication yes")
	}
	lines = append(lines,
		"sentinel monitor "+MasterName+" "+host+" "+masterPort+" 2",
		"sentinel down-after-milliseconds "+MasterName+" "+milliseconds(o.NodeTimeout),
		"sentinel failover-timeout "+MasterName+" "+milliseconds(5*o.NodeTimeout))
	if o.Password != "" {
		lines = append(lines, "sentinel auth-pass "+MasterName+" "+o.Password)
	}
	file := filepath.Join(n.dir, "sentinel.conf") // sentinels write their state into this file
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	n.args = []string{file, "--sentinel"}
	if e.watcher != "" {
		n.engine.program = e.watcher
	}
	n.Client = redis.NewClient(n.ClientOptions())
	n.run()
	return n
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinels) Addrs() []string {
	var addrs []string
	for _, n := range s.Sentinels {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// AwaitFailover waits until each sentinel watches a node other than old that is a master, and
// returns that node. By then the failover has ended for each sentinel. A test must not go on
// before: the sentinel that leads a failover names the promoted node before the failover has ended,
// and waits for that node forever if it dies meanwhile.
func (s *Sentinels) AwaitFailover(old *Node) *Node {
	s.t.Helper()
	var taken *Node
	for _, sentinel := range s.Sentinels {
		Await(s.t, "a replica takes over for "+old.Addr, func() error {
			master, err := sentinel.watched(s.t)
			if err != nil {
				return err
			}
			for _, n := range append([]*Node{s.Master}, s.Replicas...) {
				if n != old && n.Addr == net.JoinHostPort(master["ip"], master["port"]) && master["flags"] == "master" && n.Role() == "master" {
					taken = n
					return nil
				}
			}
			return fmt.Errorf("the master is %s:%s, %s", master["ip"], master["port"], master["flags"])
		})
	}
	return taken
}

// watched returns the fields that the sentinel n reports about the master.
func (n *Node) watched(t testing.TB) (map[string]string, error) {
	words, err := n.Client.Do(t.Context(), "SENTINEL", "MASTER", MasterName).StringSlice()
	if err != nil {
		return nil, err
	}
	master := make(map[string]string, len(words)/2)
	for pair := range slices.Chunk(words, 2) {
		master[pair[0]] = pair[len(pair)-1]
	}
	return master, nil
}
