package docgen

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/commands"
)

// missingGroup is a part of Redis that this server lacks: commands that have one reason.
type missingGroup struct {
	what     string
	status   string
	why      string
	commands []string // as COMMAND LIST of Redis names them, subcommands as "container|name"
}

// What a group has for its status.
const (
	planned  = "planned"
	staysOut = "stays out"
)

// missingFromRedis lists every command and subcommand of Redis 7.2 that the command
// table lacks. A test compares both with the list of Redis, so that a command is in
// exactly one of them.
var missingFromRedis = []missingGroup{
	{
		"Users", planned, "There is one user, `default`, with one password.",
		[]string{
			"acl|deluser", "acl|dryrun", "acl|genpass", "acl|getuser", "acl|load", "acl|log",
			"acl|save", "acl|setuser",
		},
	},
	{
		"Replication", planned, "A server has no replicas, and is none. WAIT answers 0.",
		[]string{"failover", "psync", "replconf", "replicaof", "slaveof", "sync"},
	},
	{
		"Watching all commands", planned, "Until then `RL.TOP`, CLIENT LIST and INFO commandstats show what a server does.",
		[]string{"monitor"},
	},
	{
		"Streams", staysOut, "No limiter needs this type. Queues belong on Redis.",
		[]string{
			"xack", "xadd", "xautoclaim", "xclaim", "xdel",
			"xgroup", "xgroup|create", "xgroup|createconsumer", "xgroup|delconsumer", "xgroup|destroy",
			"xgroup|help", "xgroup|setid",
			"xinfo", "xinfo|consumers", "xinfo|groups", "xinfo|help", "xinfo|stream",
			"xlen", "xpending", "xrange", "xread", "xreadgroup", "xrevrange", "xsetid", "xtrim",
		},
	},
	{
		"Geo", staysOut, "No limiter needs positions.",
		[]string{
			"geoadd", "geodist", "geohash", "geopos", "georadius", "georadius_ro", "georadiusbymember",
			"georadiusbymember_ro", "geosearch", "geosearchstore",
		},
	},
	{
		"Bitmaps", staysOut, "No limiter needs single bits of a string.",
		[]string{"bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "getbit", "setbit"},
	},
	{
		"HyperLogLog", staysOut, "No limiter needs an estimate of how many elements differ.",
		[]string{"pfadd", "pfcount", "pfdebug", "pfmerge", "pfselftest"},
	},
	{
		"Algebra of sets and sorted sets", staysOut, "Limiters do not compare collections. The work of one call grows with all elements of all its keys.",
		[]string{
			"sdiff", "sdiffstore", "sinter", "sintercard", "sinterstore", "sunion", "sunionstore",
			"zdiff", "zdiffstore", "zinter", "zintercard", "zinterstore", "zunion", "zunionstore",
		},
	},
	{
		"Sorting and comparing", staysOut, "The work of one call grows faster than its values do.",
		[]string{"lcs", "sort", "sort_ro"},
	},
	{
		"Sorted sets by member", staysOut, "Limiters go through sorted sets by score and by rank.",
		[]string{"zlexcount", "zrangebylex", "zremrangebylex", "zrevrangebylex"},
	},
	{
		"The rest of collections", staysOut, "The libraries of [compatibility.md](docs/compatibility.md) run without them.",
		[]string{"hrandfield", "linsert", "lpos", "smove", "zrandmember", "zrangestore"},
	},
	{
		"Copying and moving keys", staysOut, "Values are not kept in the format of Redis. `cellserver import` and `cellserver export` move the keys of redis-cell.",
		[]string{"copy", "dump", "migrate", "move", "restore", "restore-asking", "swapdb"},
	},
	{
		"Cluster", staysOut, "Each server stands alone. CLUSTER is answered as by a Redis that is not in cluster mode: with an error, whatever the subcommand.",
		[]string{
			"cluster|addslots", "cluster|addslotsrange", "cluster|bumpepoch", "cluster|count-failure-reports",
			"cluster|countkeysinslot", "cluster|delslots", "cluster|delslotsrange", "cluster|failover",
			"cluster|flushslots", "cluster|forget", "cluster|getkeysinslot", "cluster|help", "cluster|info",
			"cluster|keyslot", "cluster|links", "cluster|meet", "cluster|myid", "cluster|myshardid",
			"cluster|nodes", "cluster|replicas", "cluster|replicate", "cluster|reset", "cluster|saveconfig",
			"cluster|set-config-epoch", "cluster|setslot", "cluster|shards", "cluster|slaves", "cluster|slots",
		},
	},
	{
		"Modules", staysOut, "The commands of redis-cell are built in. MODULE LIST names it.",
		[]string{"module|load", "module|loadex", "module|unload"},
	},
	{
		"Waiting for the disk", staysOut, "With `appendfsync always` the reply to a write waits for the disk.",
		[]string{"waitaof"},
	},
	{
		"Inside Redis", staysOut, "They look into parts of Redis that are not here, or stop it for tests.",
		[]string{"debug", "latency|doctor", "latency|graph", "memory|malloc-stats"},
	},
}

// missingTable is what the README says of the parts of Redis that are not here: first
// the commands that are unknown, then those that are known and do nothing.
func missingTable(t *commands.Table) string {
	var b strings.Builder
	b.WriteString("\n| not there | commands | status | why |\n|---|---|---|---|\n")
	for _, g := range missingFromRedis {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.what, listed(g.commands), g.status, g.why)
	}
	b.WriteString("\n| there, but | commands |\n|---|---|\n")
	fmt.Fprintf(&b, "| answered with an error only | %s |\n", listed(replying(t, "an error")))
	fmt.Fprintf(&b, "| always empty | %s |\n\n", listed(replying(t, "an empty ")))
	return b.String()
}

// replying returns the commands whose documented reply is this text, or begins with it if it
// ends in a space.
func replying(t *commands.Table, reply string) (names []string) {
	for _, c := range t.All() {
		if c.Run != nil && (c.Reply == reply || strings.HasSuffix(reply, " ") && strings.HasPrefix(c.Reply, reply)) {
			names = append(names, c.Name)
		}
	}
	return names
}

// listed writes names as people do. Subcommands share the name of their container:
// XINFO GROUPS/HELP.
func listed(names []string) string {
	var b strings.Builder
	last := ""
	for _, name := range names {
		container, sub, isSub := strings.Cut(name, "|")
		switch {
		case isSub && container == last:
			b.WriteString("/" + strings.ToUpper(sub))
			continue
		case b.Len() > 0:
			b.WriteString(", ")
		}
		b.WriteString(display(name))
		last = ""
		if isSub {
			last = container
		}
	}
	return b.String()
}
