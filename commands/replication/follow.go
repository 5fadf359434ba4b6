package replication

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
)

// These are error replies. They have the texts of Redis, except for errors that Redis does not have.
const (
	errPort          resp.Error = "ERR Invalid master port"
	errHost          resp.Error = "ERR Invalid master host"
	errFollowReplica resp.Error = "ERR Command is not valid when client is a replica."
	errFailingOver   resp.Error = "ERR REPLICAOF not allowed while failing over."
	errLoading       resp.Error = "LOADING Redis is loading the dataset in memory"

	errTimeout resp.Error = "ERR FAILOVER timeout must be greater than 0"
)

// maxHost is the maximum length of a host name in bytes, as in DNS (RFC 1035).
const maxHost = 255

// follow implements REPLICAOF and SLAVEOF. It passes the request to the node and replies before the
// node has completed it. Only REPLICAOF NO ONE waits for the promotion, for up to leadTimeout,
// unless it is in a transaction.
func follow(c *command.Call) {
	n := c.Server.Node()
	role := n.Role()
	switch {
	case c.Server.Loading() && !role.Replica: // a server that is still loading its own files must not discard the keys
		c.Fail(errLoading)
	case failingOver(n):
		c.Fail(errFailingOver)
	case isNoOne(c):
		if !role.Replica {
			c.OK()
			return
		}
		c.Server.Changed("role", "REPLICAOF NO ONE", c.Client.By())
		lead(c, n)
	default:
		followHost(c, n, &role)
	}
}

// leadTimeout is the maximum time for which REPLICAOF NO ONE waits. A long-running script can
// delay the promotion.
const leadTimeout = 5 * time.Second

// lead requests the promotion of the node, and parks the client until the node accepts writes or
// leadTimeout has passed: a Redis accepts writes as soon as it replies. In a transaction, and while
// the server is stopping, lead replies at once.
func lead(c *command.Call, n env.NodeRole) {
	if !c.MayWait() {
		n.Promote(nil)
		c.OK()
		return
	}
	p := c.NewWait(0)
	p.NoEffect = true
	ok := func() { p.Finish(func(reply *resp.Writer) { reply.Status("OK") }) }
	stop := c.Store.AfterFunc(leadTimeout, ok)
	p.Cancel = func() { stop() }
	c.Park(p)
	n.Promote(func() {
		stop()
		ok()
	})
}

// followHost implements REPLICAOF host port. role is the present role of the node n. If the node is
// already a replica of that primary, followHost only says so. It fails if the client is a replica,
// the host or the port is invalid, or the server cannot replicate.
func followHost(c *command.Call, n env.Node, role *protocol.Role) {
	if c.Client.Marks&command.MarkReplica != 0 {
		c.Fail(errFollowReplica)
		return
	}
	at, err := port(c.Args[2])
	if err != "" {
		c.Fail(err)
		return
	}
	if !isHost(c.Args[1]) {
		c.Fail(errHost)
		return
	}
	if refusal := env.Refusal(n); refusal != "" {
		c.Fail(refusal)
		return
	}
	host := string(c.Args[1])
	if role.Replica && arg.IsWord(c.Args[1], role.Host) && role.Port == at {
		c.W.Status("OK Already connected to specified master")
		return
	}
	n.ReplicaOf(host, strconv.Itoa(at))
	c.Server.Changed("role", "REPLICAOF "+host+" "+strconv.Itoa(at), c.Client.By())
	c.OK()
}

// auditFollow returns the attributes for the audit log: the primary that the server is to follow. If
// REPLICAOF host port has failed, auditFollow returns nil, because the arguments may be any text.
func auditFollow(c *command.Call) []slog.Attr {
	if isNoOne(c) {
		return []slog.Attr{slog.String("primary", "no one")}
	}
	if _, err := port(c.Args[2]); err != "" || c.Failed {
		return nil
	}
	host := string(command.Echo(c.Args[1], command.MaxEcho))
	return []slog.Attr{slog.String("primary", host+":"+string(c.Args[2]))}
}

func isNoOne(c *command.Call) bool {
	return arg.IsWord(c.Args[1], "NO") && arg.IsWord(c.Args[2], "ONE")
}

// isHost reports whether b may be a host name or an address: up to maxHost printable ASCII
// characters without spaces, commas, quotation marks and backslashes. The server dials such a host,
// shows it in INFO and writes it to the configuration, so other text must be refused.
func isHost(b []byte) bool {
	if len(b) == 0 || len(b) > maxHost {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c > '~' || c == ',' || c == '"' || c == '\'' || c == '\\' {
			return false
		}
	}
	return true
}

// port parses the port of a primary. Like Redis, it accepts 0, although no server listens on it.
// The error is "" if the port is valid.
func port(b []byte) (int, resp.Error) {
	n, ok := arg.Int(b)
	if !ok || n < 0 || n > 65535 {
		return 0, errPort
	}
	return int(n), ""
}

// failingOver reports whether a FAILOVER is in progress.
func failingOver(n env.NodeState) bool {
	for _, f := range n.Info() {
		if f.Name == "master_failover_state" {
			return f.Value != "no-failover"
		}
	}
	return false
}

// failover implements FAILOVER. It passes the request to the node and replies; the failover
// continues in the background.
func failover(c *command.Call) {
	call, err := parseFailover(c.Args[1:])
	if err != "" {
		c.Fail(err)
		return
	}
	if err := c.Server.Node().Failover(call); err != "" {
		c.Fail(err)
		return
	}
	if call.Abort {
		c.Server.Changed("role", "FAILOVER ABORT", c.Client.By())
	} else {
		c.Server.Changed("role", "FAILOVER", c.Client.By())
	}
	c.OK()
}

// parseFailover parses the arguments of FAILOVER. ABORT must be the only argument. Each option may
// occur once. err is "" on success.
func parseFailover(words [][]byte) (call protocol.Failover, err resp.Error) {
	if len(words) == 1 && arg.IsWord(words[0], "ABORT") {
		return protocol.Failover{Abort: true}, ""
	}
	for len(words) > 0 {
		used := 1
		switch word := words[0]; {
		case arg.IsWord(word, "TIMEOUT") && len(words) > 1 && call.Timeout == 0:
			used = 2
			call.Timeout, err = failoverTimeout(words[1])
		case arg.IsWord(word, "TO") && len(words) > 2 && call.Host == "":
			used = 3
			call.Host, call.Port, err = failoverTarget(words[1], words[2])
		case arg.IsWord(word, "FORCE") && !call.Force:
			call.Force = true
		default:
			err = resp.ErrSyntax
		}
		if err != "" {
			return protocol.Failover{}, err
		}
		words = words[used:]
	}
	return call, ""
}

// maxTimeout is a hundred years in milliseconds. Longer timeouts are reduced to maxTimeout, so
// that sums do not overflow.
const maxTimeout = 100 * 366 * 24 * 3600 * 1000

// failoverTimeout parses the argument of TIMEOUT in FAILOVER, in milliseconds. It reduces a longer
// time to maxTimeout. The error is "" on success.
func failoverTimeout(b []byte) (time.Duration, resp.Error) {
	switch n, ok := arg.Int(b); {
	case !ok:
		return 0, resp.ErrNotInteger
	case n <= 0:
		return 0, errTimeout
	default:
		return time.Duration(min(n, maxTimeout)) * time.Millisecond, ""
	}
}

// failoverTarget parses the arguments of TO in FAILOVER, and returns the host and the port. It does
// not check the range of the port. The error is "" on success.
func failoverTarget(host, at []byte) (string, string, resp.Error) {
	n, ok := arg.Int(at)
	switch {
	case !ok:
		return "", "", resp.ErrNotInteger
	case !isHost(host):
		return "", "", resp.ErrSyntax
	}
	return string(host), strconv.FormatInt(n, 10), ""
}

// role implements ROLE. It replies with the role, as Redis does: for a replica the state of its
// link, and for a primary the list of its replicas.
func role(c *command.Call) {
	r := c.Server.Node().Role()
	if r.Replica {
		c.W.Array(5)
		c.W.BulkString("slave")
		c.W.BulkString(r.Host)
		c.W.Int(int64(r.Port))
		c.W.BulkString(r.State)
		c.W.Int(r.Offset)
		return
	}
	c.W.Array(3)
	c.W.BulkString("master")
	c.W.Int(max(r.Offset, 0))
	c.W.Array(len(r.Replicas))
	for _, at := range r.Replicas {
		c.W.Array(3)
		c.W.BulkString(at.Host)
		c.W.BulkString(at.Port)
		c.W.BulkString(strconv.FormatInt(at.Offset, 10))
	}
}
