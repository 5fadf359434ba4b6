package config

import (
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// maxLoops is the maximum number of event loops unless io-threads asks for more. With more loops
// the kernel's network path is the bottleneck.
const maxLoops = 8

// Loops returns the number of event loops: the value of io-threads, or one for each core but at
// most maxLoops.
func (c *Config) Loops() int {
	if n := int(c.Number("io-threads")); n > 0 {
		return n
	}
	return min(c.cores, maxLoops)
}

// Processors returns the number of threads that should run Go code at once (GOMAXPROCS). There is
// one for each event loop, which is never interrupted, and one for background work, so that active
// expiry never waits for traffic. The writer of the AOF needs another one, because it waits in the
// kernel. While one thread is spare, Go's runtime does not wake up every 20 µs to check whether it
// should take others back, which costs a quarter of a core under appendfsync always. 0 means as
// many as there are cores.
func (c *Config) Processors() int {
	if transport.Kind(c.Value("transport")).Resolve() != transport.KindEpoll {
		return 0
	}
	n := c.Loops() + 1
	if c.Yes("appendonly") {
		n++
	}
	return n
}

const (
	// maxSkip is the maximum length, in bytes, of an overlong command that is refused without
	// closing its connection. It is the longest argument that Redis accepts by default. Redis also
	// closes the connection beyond its limit.
	maxSkip = 512 << 20
	// leastCommand is the length, in bytes, that a command may always have, whatever
	// maxmemory-clients is.
	leastCommand = 1 << 20
)

// Limits returns the limits that sessions use, computed from the present settings.
func (c *Config) Limits() env.Limits {
	l := env.DefaultLimits()
	l.MaxClients = int(c.Number("maxclients"))
	l.MaxPerAddress = int(c.Number("max-clients-per-ip"))
	l.Databases = int(c.Number("databases"))
	l.ProtectedMode = c.Yes("protected-mode")
	l.Password = c.Value("requirepass")
	l.Idle = c.Seconds("timeout")
	l.ReplicaTimeout = c.Seconds("repl-timeout")
	l.Partial = c.Seconds("partial-timeout")
	l.PreAuth = c.Seconds("auth-timeout")
	l.Frame.MaxBulk = int(c.Number("proto-max-bulk-len"))
	l.Frame.MaxCommand = int(c.Number("client-query-buffer-limit"))
	l.Frame.MaxSkip = maxSkip
	l.ClientMemory = sizeOrShare{}.of(c.Value("maxmemory-clients"), c.Number("maxmemory"))
	if most := int(l.ClientMemory / 2); most > 0 && most < l.Frame.MaxCommand {
		// A longer command would close its client, because of the growing input buffer.
		l.Frame.MaxCommand, l.Frame.CommandOption = max(most, leastCommand), "maxmemory-clients"
	}
	l.FrameUnauth = l.Frame.PreAuth()
	l.Output = outputLimits{}.ofSubscribers(c.Value("client-output-buffer-limit"))
	l.LogMaxEntries = c.Number("sw-log-max-entries")
	l.MaxMembers = c.Number("cc-max-members")
	l.IDTTL = c.Seconds("id-ttl")
	l.IDsPerKey = uint32(c.Number("id-max-per-key"))
	l.ReservesPerKey = uint32(c.Number("reserve-max-per-key"))
	l.MaxElements = c.Number("collection-max-elements")
	l.CertificateUser = c.Value("tls-auth-clients-user")
	l.Refusals = int(c.Number("acllog-max-len"))
	l.EveryKey = c.Yes("acl-keyspace-needs-allkeys")
	l.AllChannels = c.Value("acl-pubsub-default") == "allchannels"
	l.NearLimit = int(c.Number("metrics-near-limit"))
	l.TrackingKeys = c.Number("tracking-table-max-keys")
	l.Observing = c.observing()
	l.Busy = c.Milliseconds("busy-reply-threshold")
	l.Service = c.rateLimitService()
	return l
}

// observing returns the settings that say what is recorded about calls.
func (c *Config) observing() stats.Observing {
	o := stats.Observing{
		SlowerThan:  -1,
		SlowEntries: int(c.Number("slowlog-max-len")),
		Latency:     c.Milliseconds("latency-monitor-threshold"),
		Histograms:  c.Yes("latency-tracking"),
		Percentiles: percentiles{}.of(c.Value("latency-tracking-info-percentiles")),
		Debug:       stats.DebugCommand(slices.Index([]string{"no", "local", "yes"}, c.Value("enable-debug-command"))),
	}
	if us := c.Number("slowlog-log-slower-than"); us >= 0 {
		o.SlowerThan = time.Duration(us) * time.Microsecond
	}
	return o
}

// Groups returns the settings that say how decisions are counted by group of keys.
func (c *Config) Groups() stats.GroupOptions {
	o := stats.GroupOptions{Near: int(c.Number("metrics-near-limit"))}
	if _, delimiter, ok := strings.Cut(c.Value("metrics-group-by"), " "); ok {
		o.Delimiter, o.Max = delimiter, int(c.Number("metrics-max-groups"))
	}
	return o
}

// PolicyBounds returns the bounds for the clauses of policies.
func (c *Config) PolicyBounds() policy.Bounds {
	return policy.Bounds{LogMaxEntries: c.Number("sw-log-max-entries"), MaxMembers: c.Number("cc-max-members")}
}
