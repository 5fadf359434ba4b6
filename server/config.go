package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands"
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
	file   string   // the configuration file, fixed after Load
	cores  int      // what the runtime was given at the start, a container's share included
}

// DefaultConfig returns the settings of a server that is told nothing.
func DefaultConfig() *Config {
	c := &Config{table: options(), byName: make(map[string]int), cores: runtime.GOMAXPROCS(0)}
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

// Load returns the settings from, in rising precedence, the defaults, the file
// that args may begin with, the environment (CELLSERVER_<NAME>) and the flags in
// args (`--name value ...`). The error names every fault there is, one on a line.
func Load(args, environ []string) (*Config, error) {
	c := DefaultConfig()
	var faults []error
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		c.file = args[0]
		args = args[1:]
		content, err := os.ReadFile(c.file)
		if err != nil {
			faults = append(faults, fmt.Errorf("reading the configuration: %w", err))
		}
		faults = append(faults, c.parseFile(c.file, string(content))...)
	}
	faults = append(faults, c.parseEnvironment(environ)...)
	faults = append(faults, c.parseFlags(args)...)
	if len(faults) == 0 {
		faults = append(faults, c.checkExposure())
	}
	return c, errors.Join(faults...)
}

// checkExposure refuses addresses that others can reach without a password, unless
// somebody has said in so many words that everybody may come in.
func (c *Config) checkExposure() error {
	if c.value("requirepass") != "" || c.value("protected-mode") == "no" || c.value("port") == "0" {
		return nil
	}
	for _, a := range bindAddresses(c.value("bind")) {
		host := strings.TrimPrefix(a, "-")
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("bind %s lets others in without a password: set requirepass, or protected-mode no", a)
		}
	}
	return nil
}

// assignWords is assign for a value that may have been given in several words.
func (c *Config) assignWords(where, name string, value []string) error {
	if i, ok := c.byName[strings.ToLower(name)]; ok && len(value) > 1 {
		switch c.table[i].kind.(type) {
		case words, savePoints, outputLimits:
		default:
			return fmt.Errorf("%s: option %q takes one value", where, name)
		}
	}
	return c.assign(where, name, strings.Join(value, " "))
}

// assign sets one option from where, which begins the text of a fault.
func (c *Config) assign(where, name, value string) error {
	i, ok := c.byName[strings.ToLower(name)]
	if !ok {
		return fmt.Errorf("%s: unknown option %q", where, name)
	}
	parsed, err := c.parse(i, value)
	if err != nil {
		return fmt.Errorf("%s: option %q: %w", where, name, err)
	}
	c.values[i] = parsed
	return nil
}

// environmentPrefix begins the names of our environment variables.
const environmentPrefix = "CELLSERVER_"

func (c *Config) parseEnvironment(environ []string) (faults []error) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, environmentPrefix)
		if !ours || serviceLink(rest, value) {
			continue
		}
		option := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if err := c.assign("environment variable "+name, option, value); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// serviceLink reports whether a variable of our prefix is none of ours: Kubernetes
// tells every pod about a service named cellserver by such as
// CELLSERVER_SERVICE_HOST and CELLSERVER_PORT=tcp://10.0.0.1:6379.
func serviceLink(rest, value string) bool {
	return strings.HasPrefix(rest, "SERVICE_") || strings.HasPrefix(rest, "PORT_") ||
		rest == "PORT" && strings.Contains(value, "://")
}

// parseFlags reads `--name value ...`: everything up to the next flag is the
// value, so that `--bind a b` needs no quotes. A value may not begin with "--".
func (c *Config) parseFlags(args []string) (faults []error) {
	for len(args) > 0 {
		name, isFlag := strings.CutPrefix(args[0], "--")
		if !isFlag || name == "" {
			faults = append(faults, fmt.Errorf("command line: %q is not a flag", args[0]))
			args = args[1:]
			continue
		}
		name, first, joined := strings.Cut(name, "=")
		args = args[1:]
		var parts []string
		for len(args) > 0 && !strings.HasPrefix(args[0], "--") {
			parts = append(parts, args[0])
			args = args[1:]
		}
		switch {
		case joined && len(parts) > 0:
			faults = append(faults, fmt.Errorf("command line: option %q has a value too many", name))
			continue
		case !joined && len(parts) == 0:
			faults = append(faults, fmt.Errorf("command line: option %q lacks its value", name))
			continue
		case joined:
			parts = []string{first}
		}
		if err := c.assignWords("command line", name, parts); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// value returns an option of ours; asking for one that does not exist is a
// mistake in the source.
func (c *Config) value(name string) string {
	i, ok := c.byName[name]
	if !ok {
		panic("server: no option " + name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[i]
}

// Get implements commands.Settings.
func (c *Config) Get(match func(name string) bool) (pairs [][2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.table {
		if match(o.name) {
			pairs = append(pairs, [2]string{o.name, c.values[i]})
		}
		if o.alias != "" && match(o.alias) {
			pairs = append(pairs, [2]string{o.alias, c.values[i]})
		}
	}
	return pairs
}

// Set implements commands.Settings: all pairs take effect, or none.
func (c *Config) Set(pairs [][2]string) resp.Error {
	c.setting.Lock()
	defer c.setting.Unlock()
	c.mu.Lock()
	parsed := make(map[int]string, len(pairs))
	for _, p := range pairs {
		i, ok := c.byName[strings.ToLower(p[0])]
		if !ok {
			c.mu.Unlock()
			return resp.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + p[0] + "'")
		}
		value, why := c.change(i, p[1])
		if _, twice := parsed[i]; twice {
			why = "duplicate parameter"
		}
		if why != "" {
			c.mu.Unlock()
			return resp.Error("ERR CONFIG SET failed (possibly related to argument '" + p[0] + "') - " + why)
		}
		parsed[i] = value
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

// parse returns value as option i would have it, what it leaves as it is included.
func (c *Config) parse(i int, value string) (string, error) {
	if k, ok := c.table[i].kind.(outputLimits); ok {
		return k.change(c.values[i], value)
	}
	return c.table[i].kind.parse(value)
}

// change checks a new value of option i.
func (c *Config) change(i int, value string) (parsed, why string) {
	if !c.table[i].mutable {
		return "", "can't set immutable config"
	}
	parsed, err := c.parse(i, value)
	if err != nil {
		return "", err.Error()
	}
	return parsed, ""
}

// onChange has f called after every successful Set.
func (c *Config) onChange(f func()) {
	c.mu.Lock()
	c.apply = f
	c.mu.Unlock()
}

// loops is the number of event loops: io-threads, or one for each core.
func (c *Config) loops() int {
	if n := int(number(c.value("io-threads"))); n > 0 {
		return n
	}
	return min(c.cores, maxLoops)
}

// Processors is how many threads should run Go code at once: one for each event
// loop, which is never interrupted, and one for everything beside them, so that
// active expiry never waits for traffic. A log's writer is a third that waits in the
// kernel: as long as one of all is left over, Go's runtime does not wake up every 20 µs
// to see whether it should take those back, which under appendfsync always costs a
// quarter of a core. 0 means as many as there are cores.
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

// limits derives what sessions consult.
func (c *Config) limits() commands.Limits {
	l := commands.DefaultLimits()
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
	l.FrameUnauth = l.Frame.PreAuth()
	l.ClientMemory = sizeOrShare{}.of(c.value("maxmemory-clients"), number(c.value("maxmemory")))
	l.Output = outputLimits{}.ofSubscribers(c.value("client-output-buffer-limit"))
	l.LogMaxEntries = number(c.value("sw-log-max-entries"))
	l.MaxMembers = number(c.value("cc-max-members"))
	l.MaxElements = number(c.value("collection-max-elements"))
	l.Busy = time.Duration(number(c.value("busy-reply-threshold"))) * time.Millisecond
	return l
}
