package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/missing"
)

// outcome is the content of the report of cellserver doctor.
type outcome struct {
	title string
	moves []string // parts of the server's use that work in the same way on cellserver
	loses []string // parts that do not work on cellserver, and what to do about them
	looks []string // remarks that an operator should know
	todo  []string // the commands to run, in their order
}

// judge derives the report from the findings. It makes no calls.
func judge(f *findings) *outcome {
	o := &outcome{title: titleOf(f)}
	o.judgeCommands(f)
	o.judgeKeys(f)
	options := o.judgeOptions(f)
	o.judgeRole(f)
	for _, m := range f.modules {
		if name := strings.ReplaceAll(m, "-", "_"); name == "redis_cell" {
			o.moves = append(o.moves, "module redis-cell: CL.THROTTLE is built in")
		} else {
			o.loses = append(o.loses, "module "+m+": modules cannot be loaded here; programs that call it must stay on Redis")
		}
	}
	for _, what := range f.unread {
		o.looks = append(o.looks, "could not be read: "+what)
	}
	if f.outOfTime {
		o.looks = append(o.looks, fmt.Sprintf("the time was up after %d keys: a larger --timeout allows more", f.looked))
	}
	o.prescribe(f, options)
	return o
}

func titleOf(f *findings) string {
	name, version := "Redis", f.info["redis_version"]
	switch {
	case f.info["cellserver"] != "":
		name = "cellserver, which replies as Redis"
	case f.info["valkey_version"] != "":
		name, version = "Valkey", f.info["valkey_version"]
	}
	total := int64(0)
	for _, n := range f.keys {
		total += n
	}
	return fmt.Sprintf("%s %s, up %s days, %d keys in %d databases, of which %d were examined",
		name, version, f.info["uptime_in_days"], total, len(f.keys), f.looked)
}

// judgeCommands compares the commands that clients have called with the command table.
func (o *outcome) judgeCommands(f *findings) {
	here := make(map[string]*command.Command)
	for _, c := range commands.NewTable().All() {
		here[c.Name] = c
	}
	same, calls := 0, int64(0)
	for _, name := range slices.Sorted(maps.Keys(f.calls)) {
		n := f.calls[name]
		if n == 0 {
			continue
		}
		called := fmt.Sprintf("%s (%d calls): ", shown(name), n)
		switch c := here[name]; {
		case c == nil:
			o.judgeMissing(name, called)
		case c.AlwaysEmpty():
			o.looks = append(o.looks, called+"replies, but always empty here")
		case c.OnlyFails() && (c.Group != "cluster" || f.info["cluster_enabled"] == "1"):
			o.loses = append(o.loses, called+"always replies with an error here")
		default:
			same++
			calls += n
		}
	}
	if same > 0 {
		o.moves = append(o.moves, fmt.Sprintf("%d of the commands that were called, %d calls: the replies are the same", same, calls))
	}
}

// judgeMissing describes a command that is not in the table.
func (o *outcome) judgeMissing(name, called string) {
	why := "is an error here; it belongs to a module or to a later version"
	if g, is := missing.Of(name); is {
		why = fmt.Sprintf("is an error here. %s (%s): %s", g.What, g.Status, plain(g.Why))
	}
	o.loses = append(o.loses, called+why)
}

// link matches a link in Markdown.
var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// plain removes the markup of Markdown from a text.
func plain(text string) string {
	return strings.ReplaceAll(link.ReplaceAllString(text, "$1"), "`", "")
}

// shown returns the name of a command in its usual spelling.
func shown(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "|", " ")) }

// typesHere are the types of values that this server has, too. A replica of the old server takes
// them over; import does not copy them.
var typesHere = []string{"string", "hash", "list", "set", "zset"}

// byDefault returns what CONFIG GET * shows on a server with the default configuration: the values by
// name, including older names, and options of Redis that have no effect here.
func byDefault() map[string]string {
	values := make(map[string]string)
	for _, p := range config.Default().Get(func(string) bool { return true }) {
		values[p[0]] = p[1]
	}
	return values
}

// bound returns the default of an option that is a number.
func bound(option string) int64 {
	n, _ := strconv.ParseInt(byDefault()[option], 10, 64)
	return n
}

// judgeKeys reports which keys can be copied, and which are not supported here.
func (o *outcome) judgeKeys(f *findings) {
	mostElements, longestValue := bound("collection-max-elements"), bound("proto-max-bulk-len")
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		k := f.kinds[kind]
		share := fmt.Sprintf("%d of %d keys: %s", k.keys, f.looked, kind)
		switch {
		case f.info["cellserver"] != "":
			o.moves = append(o.moves, share+"; they move with its directory")
		case kind == limiterKind && f.attachable():
			o.moves = append(o.moves, share+"; they move with their usage, by attaching or by cellserver import")
		case kind == limiterKind:
			o.moves = append(o.moves, share+"; cellserver import copies them with their usage")
		case slices.Contains(typesHere, kind):
			share = fmt.Sprintf("%s, at most %d %s", share, k.elements, map[bool]string{true: "bytes", false: "elements"}[kind == "string"])
			if f.attachable() {
				o.moves = append(o.moves, share+"; they move by attaching, and start empty otherwise")
			} else {
				o.looks = append(o.looks, share+"; this type exists here too, but no command copies the keys of a node of a cluster or of a Redis before 5")
			}
			if kind != "string" && k.elements > mostElements {
				o.loses = append(o.loses, fmt.Sprintf("a %s of %d elements: --collection-max-elements %d allows this size", kind, k.elements, 2*k.elements))
			}
			if kind == "string" && k.elements > longestValue {
				o.loses = append(o.loses, fmt.Sprintf("a string of %d bytes: --proto-max-bulk-len and --client-query-buffer-limit must be larger", k.elements))
			}
		default:
			o.loses = append(o.loses, share+"; this type does not exist here")
		}
		if k.longestKey > longestKey {
			o.loses = append(o.loses, fmt.Sprintf("a key of %d bytes (%s): the longest is %d", k.longestKey, kind, longestKey))
		}
	}
	for _, db := range slices.Sorted(maps.Keys(f.keys)) {
		if db >= databases {
			o.loses = append(o.loses, fmt.Sprintf("database %d (%d keys): only databases 0 to %d exist", db, f.keys[db], databases-1))
		}
	}
}

// ofThePlace has the options for which judgeOptions returns no flag, because they depend on where a
// server runs, or because the report treats them elsewhere.
var ofThePlace = []string{
	"bind", "port", "unixsocket", "unixsocketperm", "dir", "logfile", "pidfile", "daemonize", "supervised", "tcp-backlog", "io-threads",
	"requirepass", "appenddirname", "appendonly", "save", "databases", "maxmemory-clients",
	"replicaof", "masteruser", "masterauth", "replica-announce-ip", "replica-announce-port", "tls-replication",
}

// redisLimits has the defaults of Redis from which the defaults of cellserver differ on purpose. A
// server with the default of Redis has probably not chosen it.
var redisLimits = map[string]string{"proto-max-bulk-len": "536870912", "client-query-buffer-limit": "1073741824", "repl-backlog-size": "1048576"}

// judgeOptions reports which options of the examined server have the same meaning here, and whether
// it has a password or users. It returns the options that differ from the defaults, as flags for a
// new server.
func (o *outcome) judgeOptions(f *findings) (flags []string) {
	ours := byDefault()
	same, idle := 0, 0
	for _, name := range slices.Sorted(maps.Keys(f.config)) {
		value := f.config[name]
		verdict, shown, why := config.Judge(name, value)
		switch verdict {
		case config.Refused:
			o.loses = append(o.loses, fmt.Sprintf("option %s %s: %v", name, value, why))
		case config.Idle:
			idle++
		case config.Honoured:
			same++
			if shown != ours[name] && redisLimits[name] != shown && !slices.Contains(ofThePlace, name) && name != "lua-time-limit" {
				flags = append(flags, "--"+name+" "+quoted(shown))
			}
		}
	}
	if f.config != nil {
		o.moves = append(o.moves, fmt.Sprintf("%d options mean the same; %d have no effect here and are ignored", same, idle))
	}
	if f.config["requirepass"] != "" {
		o.looks = append(o.looks, "it has a password, PASSWORD below: give the new server the same")
	}
	if f.users > 1 {
		o.looks = append(o.looks, fmt.Sprintf("%d users: write what ACL LIST there prints to a file, and name it with --aclfile", f.users))
	}
	if f.config["appendonly"] == "yes" || f.config["save"] != "" {
		flags = append(flags, "--appendonly yes")
	}
	return flags
}

// judgeRole reports the replicas and the primary of the server, whether it is a node of a cluster,
// and whether it has evicted keys.
func (o *outcome) judgeRole(f *findings) {
	if f.info["role"] == "slave" {
		o.looks = append(o.looks, "it is a replica of "+f.info["master_host"]+": examine that server, which has the newest keys")
	}
	if n := f.info["connected_slaves"]; n != "" && n != "0" {
		o.looks = append(o.looks, n+" replicas: start as many servers here, with --replicaof")
	}
	if f.info["cluster_enabled"] == "1" {
		o.loses = append(o.loses, "it is a node of a cluster and has only some of the keys: examine and import each node by itself")
	}
	if n := f.info["evicted_keys"]; n != "" && n != "0" {
		o.looks = append(o.looks, n+" keys were evicted for memory: here new keys are refused instead, so set a larger maxmemory")
	}
}

// attachable reports whether a cellserver can be a replica of the examined server: see
// docs/moving-in.md.
func (f *findings) attachable() bool {
	major, _, _ := strings.Cut(f.info["redis_version"], ".")
	n, _ := strconv.Atoi(major)
	return f.info["cellserver"] == "" && f.info["cluster_enabled"] != "1" && f.info["role"] != "slave" && n >= 5
}

// prescribeAttaching adds the commands with which a server takes over all keys while clients keep
// working.
func (o *outcome) prescribeAttaching(f *findings, flags []string) {
	host, port := "HOST", "PORT"
	if u, err := url.Parse(strings.Trim(f.address, "'")); err == nil && u.Hostname() != "" {
		host, port = u.Hostname(), cmp.Or(u.Port(), "6379")
	}
	start := append([]string{"cellserver --dir state --replicaof " + quoted(host) + " " + port}, flags...)
	if f.config["requirepass"] != "" {
		start = append(start, "--masterauth PASSWORD")
	}
	o.todo = append(o.todo,
		"# docs/moving-in.md explains each step; NEW is the address of the new server, which the old one reaches",
		strings.Join(start, " "),
		"redis-cli -h NEW INFO replication  # until master_link_status:up; cell_attach_skipped names what does not move")
	if f.config["requirepass"] != "" {
		o.todo = append(o.todo, "redis-cli -u "+f.address+" CONFIG SET masterauth PASSWORD")
	}
	o.todo = append(o.todo, "redis-cli -u "+f.address+" FAILOVER TO NEW 6379 TIMEOUT 10000  # Redis 6.2 and later")
	if f.kinds[limiterKind] != nil {
		o.todo = append(o.todo, "# or stop the callers, and move the limiters alone",
			"cellserver import "+f.address+" state/appendonlydir",
			strings.Join(append([]string{"cellserver --dir state"}, flags...), " "))
	}
	o.prescribeFile(f)
}

func (o *outcome) prescribeFile(f *findings) {
	if file := f.info["config_file"]; file != "" {
		o.todo = append(o.todo, "# or with its configuration, without the options that are refused above: cellserver "+file)
	}
}

// prescribe adds the commands that move the server to a cellserver: attaching if that is possible,
// otherwise an import of its limiters and a new server with the options in flags. For a cellserver
// it only says how to move it.
func (o *outcome) prescribe(f *findings, flags []string) {
	if store := f.config["store"]; f.info["cellserver"] != "" && store != "" {
		o.todo = append(o.todo, "# it is a cellserver already, and has its limits in "+store+": start another with the same --store")
		return
	}
	if f.info["clock_manual"] == "1" {
		o.todo = append(o.todo, "# it is a cellserver with a manual clock, for tests only: it keeps nothing to move")
		return
	}
	if f.info["cellserver"] != "" {
		o.todo = append(o.todo, "# it is a cellserver already: to move it, stop it and copy its dir")
		if f.config["appendonly"] != "yes" {
			o.todo = append(o.todo, "# before that, save its keys there", "redis-cli -u "+f.address+" SAVE")
		}
		return
	}
	if f.config["requirepass"] != "" {
		flags = append(flags, "--requirepass PASSWORD")
	}
	if len(f.kinds) > 0 && f.attachable() {
		o.prescribeAttaching(f, flags)
		return
	}
	limiters := f.kinds[limiterKind] != nil
	if limiters {
		o.todo = append(o.todo,
			"# stop the callers, then",
			"cellserver import "+f.address+" state/appendonlydir",
		)
		if !slices.Contains(flags, "--appendonly yes") {
			o.looks = append(o.looks, "it keeps nothing over a restart; what is imported is loaded, and kept on with --appendonly yes")
		}
		flags = append([]string{"--dir state"}, flags...)
	}
	o.todo = append(o.todo, strings.Join(append([]string{"cellserver"}, flags...), " "))
	o.prescribeFile(f)
}
