package config

import (
	"strings"
	"time"
)

// Replication has the settings of replication. The doc texts of the options explain them.
type Replication struct {
	Host, Port     string // address of the primary; both are empty on a primary
	User, Password string // credentials for the login to the primary; empty if it needs none
	TLS            bool   // whether the link to the primary uses TLS

	Priority       int
	AnnounceIP     string // address that the replica announces; "" for the address that the primary sees
	AnnouncePort   int    // port that the replica announces; 0 for the port on which it listens
	Announced      bool
	ServeStaleData bool

	Timeout, PingPeriod time.Duration
	BacklogSize         int64         // size of the backlog in bytes
	BacklogTTL          time.Duration // time for which the backlog is kept without replicas; 0 means forever
	MinReplicas         int           // number of replicas that are needed to accept writes; 0 for none
	MaxLag              time.Duration // maximum lag of a replica that counts for MinReplicas; 0 means that none are needed

	AckReplies  int // number of replicas that must have a write before its reply is sent
	AckTimeout  time.Duration
	RefuseOther bool
}

// leastBacklog is the minimum size of the replication backlog, in bytes. A smaller value is raised
// to it, as in Redis.
const leastBacklog = 16 << 10

// Replication returns the present settings of replication.
func (c *Config) Replication() Replication {
	host, port, _ := strings.Cut(c.Value("replicaof"), " ")
	return Replication{
		Host: host, Port: port,
		User: c.Value("masteruser"), Password: c.Value("masterauth"), TLS: c.Yes("tls-replication"),
		Priority: int(c.Number("replica-priority")), AnnounceIP: c.Value("replica-announce-ip"),
		AnnouncePort: int(c.Number("replica-announce-port")), Announced: c.Yes("replica-announced"),
		ServeStaleData: c.Yes("replica-serve-stale-data"),
		Timeout:        c.Seconds("repl-timeout"), PingPeriod: c.Seconds("repl-ping-replica-period"),
		BacklogSize: max(c.Number("repl-backlog-size"), leastBacklog), BacklogTTL: c.Seconds("repl-backlog-ttl"),
		MinReplicas: int(c.Number("min-replicas-to-write")), MaxLag: c.Seconds("min-replicas-max-lag"),
		AckReplies: int(c.Number("repl-ack-replies")), AckTimeout: c.Milliseconds("repl-ack-timeout"),
		RefuseOther: c.Yes("repl-refuse-empty"),
	}
}

// SetPrimary sets replicaof to the server's actual role: a replica of the primary at host and port,
// or a primary if both are empty. CONFIG GET shows the value, and CONFIG REWRITE writes or removes
// the line. SetPrimary does not call the function of OnChange, because the caller has changed the
// role.
func (c *Config) SetPrimary(host, port string) {
	i := c.byName["replicaof"]
	value := strings.TrimSpace(host + " " + port)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values[i] != value {
		c.values[i], c.origins["replicaof"] = value, ""
	}
}
