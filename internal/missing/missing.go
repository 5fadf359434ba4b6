// Package missing lists the commands of Redis that this server lacks, with the reasons.
// tools/docgen generates docs/missing.md from the list. `cellserver doctor` compares the list with
// the commands that a Redis has executed.
package missing

import "slices"

// Group is a set of commands that are missing for the same reason.
type Group struct {
	What     string
	Status   string   // whether the commands will come: Planned or StaysOut
	Why      string   // the reason, as sentences in Markdown
	Commands []string // names of the commands as in COMMAND LIST of Redis; a subcommand is "container|name"
}

// These are the values of [Group].Status.
const (
	Planned  = "planned"
	StaysOut = "stays out"
)

// Of returns the group that has command. is reports whether there is one, which means that command
// is missing.
func Of(command string) (g Group, is bool) {
	for _, g := range slices.Concat(FromRedis, Newer) {
		if slices.Contains(g.Commands, command) {
			return g, true
		}
	}
	return Group{}, false
}

// FromRedis lists all commands and subcommands of Redis 7.2 that the command table lacks. A test
// compares the list and the table with the list of Redis: every command is in exactly one of the
// two.
var FromRedis = []Group{
	{
		What: "Streams", Status: StaysOut, Why: "No limiter needs this type. Queues belong on Redis.",
		Commands: []string{
			"xack", "xadd", "xautoclaim", "xclaim", "xdel",
			"xgroup", "xgroup|create", "xgroup|createconsumer", "xgroup|delconsumer", "xgroup|destroy",
			"xgroup|help", "xgroup|setid",
			"xinfo", "xinfo|consumers", "xinfo|groups", "xinfo|help", "xinfo|stream",
			"xlen", "xpending", "xrange", "xread", "xreadgroup", "xrevrange", "xsetid", "xtrim",
		},
	},
	{
		What: "Geo", Status: StaysOut, Why: "No limiter needs positions.",
		Commands: []string{
			"geoadd", "geodist", "geohash", "geopos", "georadius", "georadius_ro", "georadiusbymember",
			"georadiusbymember_ro", "geosearch", "geosearchstore",
		},
	},
	{
		What: "Bitmaps", Status: StaysOut, Why: "No limiter needs single bits of a string.",
		Commands: []string{"bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "getbit", "setbit"},
	},
	{
		What: "HyperLogLog", Status: StaysOut, Why: "No limiter needs an estimate of how many elements differ.",
		Commands: []string{"pfadd", "pfcount", "pfdebug", "pfmerge", "pfselftest"},
	},
	{
		What: "Algebra of sets and sorted sets", Status: StaysOut, Why: "Limiters do not compare collections. The work of one call grows with all elements of all its keys.",
		Commands: []string{
			"sdiff", "sdiffstore", "sinter", "sintercard", "sinterstore", "sunion", "sunionstore",
			"zdiff", "zdiffstore", "zinter", "zintercard", "zinterstore", "zunion", "zunionstore",
		},
	},
	{
		What: "Sorting and comparing", Status: StaysOut, Why: "The work of one call grows faster than its values do.",
		Commands: []string{"lcs", "sort", "sort_ro"},
	},
	{
		What: "Sorted sets by member", Status: StaysOut, Why: "Limiters read sorted sets by score and by rank.",
		Commands: []string{"zlexcount", "zrangebylex", "zremrangebylex", "zrevrangebylex"},
	},
	{
		What: "The rest of collections", Status: StaysOut, Why: "The libraries of [compatibility.md](compatibility.md) run without them.",
		Commands: []string{"hrandfield", "linsert", "lpos", "smove", "zrandmember", "zrangestore"},
	},
	{
		What: "Copying and moving keys", Status: StaysOut, Why: "Values are not stored in the format of Redis. `cellserver import` and `cellserver export` move the keys of redis-cell.",
		Commands: []string{"copy", "dump", "migrate", "move", "restore", "restore-asking", "swapdb"},
	},
	{
		What: "Cluster", Status: StaysOut, Why: "Each server stands alone. CLUSTER replies as a Redis that is not in cluster mode: always with an error.",
		Commands: []string{
			"cluster|addslots", "cluster|addslotsrange", "cluster|bumpepoch", "cluster|count-failure-reports",
			"cluster|countkeysinslot", "cluster|delslots", "cluster|delslotsrange", "cluster|failover",
			"cluster|flushslots", "cluster|forget", "cluster|getkeysinslot", "cluster|help", "cluster|info",
			"cluster|keyslot", "cluster|links", "cluster|meet", "cluster|myid", "cluster|myshardid",
			"cluster|nodes", "cluster|replicas", "cluster|replicate", "cluster|reset", "cluster|saveconfig",
			"cluster|set-config-epoch", "cluster|setslot", "cluster|shards", "cluster|slaves", "cluster|slots",
		},
	},
	{
		What: "Modules", Status: StaysOut, Why: "The commands of redis-cell are built in. MODULE LIST names redis-cell.",
		Commands: []string{"module|load", "module|loadex", "module|unload"},
	},
	{
		What: "Waiting for the disk", Status: StaysOut, Why: "With `appendfsync always` the reply to a write waits for the disk.",
		Commands: []string{"waitaof"},
	},
	{
		What: "Art", Status: StaysOut, Why: "No program needs the drawing. `INFO server` shows the version.",
		Commands: []string{"lolwut"},
	},
	{
		What: "Inside Redis", Status: StaysOut, Why: "They examine parts of Redis that do not exist here, or stop it for tests.",
		Commands: []string{"memory|malloc-stats"},
	},
}

// Newer lists the commands that were added after Redis 7.2, up to Redis 8.8 and Valkey 9.2, and
// that the command table lacks. It does not have commands of the modules that come with Redis 8. A
// test checks it in the same way as FromRedis.
var Newer = []Group{
	{
		What: "Fields that expire", Status: StaysOut, Why: "A field ends with its hash. A limiter has a key for each state.",
		Commands: []string{
			"hexpire", "hexpireat", "hexpiretime", "hgetdel", "hgetex", "hpersist", "hpexpire", "hpexpireat",
			"hpexpiretime", "hpttl", "hsetex", "httl",
		},
	},
	{
		What: "Comparing and setting strings", Status: StaysOut, Why: "A script, or WATCH and MULTI, does the same.",
		Commands: []string{"delex", "delifeq", "digest", "msetex"},
	},
	{
		What: "Arrays", Status: StaysOut, Why: "No limiter needs this type.",
		Commands: []string{
			"arcount", "ardel", "ardelrange", "arget", "argetrange", "argrep", "arinfo", "arinsert", "arlastitems",
			"arlen", "armget", "armset", "arnext", "arop", "arring", "arscan", "arseek", "arset",
		},
	},
	{
		What: "Vector sets", Status: StaysOut, Why: "No limiter compares vectors.",
		Commands: []string{
			"vadd", "vcard", "vdim", "vemb", "vgetattr", "vinfo", "vismember", "vlinks", "vrandmember", "vrange",
			"vrem", "vsetattr", "vsim",
		},
	},
	{
		What: "More of streams", Status: StaysOut, Why: "No limiter needs this type.",
		Commands: []string{"xackdel", "xcfgset", "xdelex", "xidmprecord", "xnack"},
	},
	{
		What: "More of clusters", Status: StaysOut, Why: "Each server stands alone.",
		Commands: []string{
			"clusterscan", "cluster|cancelslotmigrations", "cluster|flushslot", "cluster|getslotmigrations",
			"cluster|migrateslots", "cluster|migration", "cluster|slot-stats", "cluster|syncslots",
		},
	},
	{
		What: "Roles", Status: StaysOut, Why: "Users have rules of their own, as in Redis 7.2.",
		Commands: []string{"acl|delrole", "acl|digest", "acl|getrole", "acl|roles", "acl|setrole"},
	},
	{
		What: "Looking inside", Status: StaysOut, Why: "SLOWLOG, RL.TOP and the page show what is slow and which keys are called most.",
		Commands: []string{
			"commandlog", "commandlog|get", "commandlog|help", "commandlog|len", "commandlog|reset",
			"hotkeys", "hotkeys|get", "hotkeys|reset", "hotkeys|start", "hotkeys|stop", "script|show",
		},
	},
	{
		What: "Importing", Status: StaysOut, Why: "No import needs to see expired keys.",
		Commands: []string{"client|import-source"},
	},
}
