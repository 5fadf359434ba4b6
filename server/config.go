package server

import (
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Config is the settings of a server. Its methods may be called from any
// goroutine.
type Config struct {
	table  []option
	byName map[string]int

	setting sync.Mutex // held from the change of a value until it is in force

	mu     sync.Mutex
	values []string // guarded by mu; in the order of table, each accepted by its kind
	apply  func()   // guarded by mu: puts changed values in force
	cores  int      // what the runtime was given at the start, a container's share included

	// The fields below do not change after Load.
	file    string      // the configuration file, "" without one
	renamed [][2]string // commands and what they are called, "" for not at all
	idle    []string    // options of Redis that were given and mean nothing, sorted
	modules []string    // modules that were named and are built in
	redis   map[string]redisOption
}

// DefaultConfig returns the settings of a server without any configuration.
func DefaultConfig() *Config {
	c := &Config{table: options(), byName: make(map[string]int), cores: runtime.GOMAXPROCS(0), redis: redisByName()}
	for i, o := range c.table {
		value, err := o.kind.parse(o.def)
		if err != nil {
			panic(fmt.Sprintf("server: default of %s: %v", o.name, err))
		}
		c.byName[o.name] = i
		if o.alias != "" {
			c.byName[o.alias] = i
		}
		c.values = append(c.values, value)
	}
	return c
}

// checkExposure refuses addresses that other machines can reach without a password,
// unless the configuration allows that explicitly.
func (c *Config) checkExposure() error {
	if a := c.exposed(); a != "" && c.value("protected-mode") == "yes" {
		return fmt.Errorf("bind %s lets other machines in without a password: set requirepass, or protected-mode no", a)
	}
	return nil
}

// exposed returns an address of bind that other machines can reach while there is no
// password, or "".
func (c *Config) exposed() string {
	if c.value("requirepass") != "" {
		return ""
	}
	for _, a := range c.addresses() {
		host := strings.TrimPrefix(a, "-")
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return a
		}
	}
	return ""
}

// addresses returns the addresses of the option bind, or none if port is 0. An empty bind
// has none, as in Redis: a value that a script left out must not open the server.
func (c *Config) addresses() []string {
	if c.value("port") == "0" {
		return nil
	}
	return strings.Fields(c.value("bind"))
}

// value returns the value of one of our options. A name that does not exist is a mistake
// in the source.
func (c *Config) value(name string) string {
	i, ok := c.byName[name]
	if !ok {
		panic("server: no option " + name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[i]
}

// remote reports whether limits are in a store elsewhere.
func (c *Config) remote() bool { return c.value("store") != "" }

// path returns the path of the file that an option names, or "". It is relative to dir,
// as in Redis.
func (c *Config) path(name string) string {
	path := c.value(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.value("dir"), path)
}

// Get implements commands.Settings.
func (c *Config) Get(match func(name string) bool) (pairs [][2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.table {
		value := c.values[i]
		if o.show != nil {
			value = o.show(value)
		}
		if match(o.name) {
			pairs = append(pairs, [2]string{o.name, value})
		}
		if o.alias != "" && match(o.alias) {
			pairs = append(pairs, [2]string{o.alias, value})
		}
	}
	for _, g := range redisOptions() {
		for _, o := range g.options {
			pairs = append(pairs, o.shown(match)...)
		}
	}
	return pairs
}

// Set implements commands.Settings: all pairs take effect, or none.
func (c *Config) Set(pairs [][2]string) resp.Error {
	c.setting.Lock()
	defer c.setting.Unlock()
	c.mu.Lock()
	parsed, err := c.changes(pairs)
	if err != "" {
		c.mu.Unlock()
		return err
	}
	for i, value := range parsed {
		c.values[i] = value
	}
	apply := c.apply
	c.mu.Unlock()
	if apply != nil {
		apply()
	}
	return ""
}

// changes checks the arguments of Set and returns the new values of our options. The
// caller holds mu.
func (c *Config) changes(pairs [][2]string) (map[int]string, resp.Error) {
	parsed, seen := make(map[int]string, len(pairs)), make(map[string]bool, len(pairs))
	for _, p := range pairs {
		var value, why, canonical string
		name := strings.ToLower(p[0])
		i, ours := c.byName[name]
		redis, known := c.redis[name]
		switch {
		case ours:
			canonical = c.table[i].name
			value, why = c.change(i, p[1])
		case known:
			canonical = redis.name
			why = changeRedis(redis, p[1])
		default:
			return nil, resp.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + p[0] + "'")
		}
		if seen[canonical] {
			why = "duplicate parameter"
		}
		if why != "" {
			return nil, resp.Error("ERR CONFIG SET failed (possibly related to argument '" + p[0] + "') - " + why)
		}
		if seen[canonical] = true; ours {
			parsed[i] = value
		}
	}
	return parsed, ""
}

// parse returns the new value of option i, with the parts that value leaves
// unchanged.
func (c *Config) parse(i int, value string) (string, error) {
	if k, ok := c.table[i].kind.(outputLimits); ok {
		return k.change(c.values[i], value)
	}
	return c.table[i].kind.parse(value)
}

// change checks a new value of option i. An immutable option accepts the value that it has:
// programs set the options that they need when they start, such as appendonly no.
func (c *Config) change(i int, value string) (parsed, why string) {
	parsed, err := c.parse(i, value)
	switch {
	case !c.table[i].mutable && (err != nil || parsed != c.values[i]):
		return "", "can't set immutable config"
	case err != nil:
		return "", err.Error()
	}
	return parsed, ""
}

// onChange makes every successful Set call f.
func (c *Config) onChange(f func()) {
	c.mu.Lock()
	c.apply = f
	c.mu.Unlock()
}

// maxLoops is the maximum number of event loops unless io-threads asks for more. With
// more loops the kernel's network path is the bottleneck.
const maxLoops = 8

// loops returns the number of event loops: io-threads, or one per core.
func (c *Config) loops() int {
	if n := int(number(c.value("io-threads"))); n > 0 {
		return n
	}
	return min(c.cores, maxLoops)
}

// Processors returns how many threads should run Go code at once: one for each event
// loop, which is never interrupted, and one for background work, so that active expiry
// never waits for traffic. The writer of the log needs another one, because it waits in
// the kernel. While one thread is spare, Go's runtime does not wake up every 20 µs to
// check whether it should take others back, which costs a quarter of a core under
// appendfsync always. 0 means as many as there are cores.
func (c *Config) Processors() int {
	if transport.Kind(c.value("transport")).Resolve() != transport.KindEpoll {
		return 0
	}
	n := c.loops() + 1
	if c.value("appendonly") == "yes" {
		n++
	}
	return n
}

const (
	// maxSkip is the length up to which an overlong command is refused without closing its
	// connection: the longest argument that Redis accepts by default. Redis also closes the
	// connection beyond its limit.
	maxSkip = 512 << 20
	// leastCommand is the length that a command may always have, whatever maxmemory-clients is.
	leastCommand = 1 << 20
)

// limits computes the limits that sessions use.
func (c *Config) limits() command.Limits {
	l := command.DefaultLimits()
	l.MaxClients = int(number(c.value("maxclients")))
	l.MaxPerAddress = int(number(c.value("max-clients-per-ip")))
	l.Databases = int(number(c.value("databases")))
	l.ProtectedMode = c.value("protected-mode") == "yes"
	l.Password = c.value("requirepass")
	l.Idle = seconds(c.value("timeout"))
	l.Partial = seconds(c.value("partial-timeout"))
	l.PreAuth = seconds(c.value("auth-timeout"))
	l.Frame.MaxBulk = int(number(c.value("proto-max-bulk-len")))
	l.Frame.MaxCommand = int(number(c.value("client-query-buffer-limit")))
	l.Frame.MaxSkip = maxSkip
	l.ClientMemory = sizeOrShare{}.of(c.value("maxmemory-clients"), number(c.value("maxmemory")))
	if most := int(l.ClientMemory / 2); most > 0 && most < l.Frame.MaxCommand {
		// A longer command would close its client, because of the growing input buffer.
		l.Frame.MaxCommand, l.Frame.CommandOption = max(most, leastCommand), "maxmemory-clients"
	}
	l.FrameUnauth = l.Frame.PreAuth()
	l.Output = outputLimits{}.ofSubscribers(c.value("client-output-buffer-limit"))
	l.LogMaxEntries = number(c.value("sw-log-max-entries"))
	l.MaxMembers = number(c.value("cc-max-members"))
	l.MaxElements = number(c.value("collection-max-elements"))
	l.TrackingKeys = number(c.value("tracking-table-max-keys"))
	l.Busy = time.Duration(number(c.value("busy-reply-threshold"))) * time.Millisecond
	return l
}
