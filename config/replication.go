package config

import (
	"strings"
	"time"
)

// Replication is what the configuration says about replication.
type Replication struct {
	Host, Port     string // of the primary; both empty for a server that is one
	User, Password string // for the primary; empty for none
	TLS            bool   // on the link to the primary

	Priority       int
	AnnounceIP     string // empty: what the primary sees
	AnnouncePort   int    // 0: the one the server listens on
	Announced      bool
	ServeStaleData bool

	Timeout, PingPeriod time.Duration
	BacklogSize         int64         // bytes
	BacklogTTL          time.Duration // 0: for ever
	MinReplicas         int           // to accept writes; 0: none
	MaxLag              time.Duration // of one of these; 0: none are needed

	AckReplies  int // how many replicas have a write before its reply leaves
	AckTimeout  time.Duration
	RefuseOther bool
}

// leastBacklog is the smallest backlog: a smaller value stands for it, as in Redis.
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

// SetPrimary makes replicaof what the server has become: the replica of the primary at host and
// port, or a primary if both are empty. CONFIG GET shows it and CONFIG REWRITE writes it, or takes
// the line away. Nobody is told: the caller is who has changed it.
func (c *Config) SetPrimary(host, port string) {
	i := c.byName["replicaof"]
	value := strings.TrimSpace(host + " " + port)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values[i] != value {
		c.values[i], c.origins["replicaof"] = value, ""
	}
}
