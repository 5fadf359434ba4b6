package redis

import (
	"bytes"
	"strconv"
)

// action says what to do with a command of the stream.
type action uint8

const (
	// The zero action: count the command by its name.
	_ action = iota
	// put: the Runner executes it, whatever its keys hold.
	put
	// run: the Runner executes it if its keys exist here, because the outcome depends on their
	// values.
	run
	// reread: do not execute it, but read its keys from the primary.
	reread
	// ignore: it changes no key.
	ignore
	// flush empties one database, or all.
	flush
	// The actions below control the stream itself.
	selects
	begins
	commits
	replconf
	swap
)

// word describes a command: its action and its keys. The keys are each step-th argument from
// first to last; a negative last counts from the end.
type word struct {
	action            action
	first, last, step int
}

// words has every command that Redis and Valkey send to replicas and that changes a value which
// this server can hold. It also has the commands that are ignored by intent. Newer versions
// rewrite some of them for their replicas. Commands with a relative time to live are not executed
// again, because the time would count from then. Their keys are read.
var words = makeWords()

func makeWords() map[string]word {
	all := map[string]word{
		"select": {action: selects}, "multi": {action: begins}, "exec": {action: commits},
		"replconf": {action: replconf}, "swapdb": {action: swap},
		"flushdb": {action: flush}, "flushall": {action: flush},
		"bitop": {reread, 2, 2, 1},
		// Redis before 7 can be configured to replicate scripts verbatim. Redis 8.4 sends MSETEX.
		// See appendMore for their keys.
		"eval": {action: reread}, "evalsha": {action: reread}, "msetex": {action: reread},
	}
	add := func(w word, names ...string) {
		for _, name := range names {
			all[name] = w
		}
	}
	add(word{action: ignore}, "ping", "publish", "spublish", "script", "function")
	add(word{put, 1, 1, 1}, "set", "setnx", "getset", "getdel")
	add(word{run, 1, 1, 1},
		"incr", "decr", "incrby", "decrby", "incrbyfloat", "append", "setrange",
		"expireat", "pexpireat", "persist",
		"hset", "hmset", "hsetnx", "hdel", "hincrby", "hincrbyfloat",
		"lpush", "rpush", "lpushx", "rpushx", "lpop", "rpop", "lset", "ltrim", "lrem",
		"sadd", "srem", "zadd", "zrem", "zincrby", "zpopmin", "zpopmax", "zremrangebyscore", "zremrangebyrank")
	add(word{run, 1, 2, 1}, "rename", "renamenx", "rpoplpush", "lmove")
	add(word{put, 1, -1, 1}, "del", "unlink")
	add(word{put, 1, -1, 2}, "mset", "msetnx")
	add(word{reread, 1, 1, 1},
		"cl.throttle", "setex", "psetex", "expire", "pexpire", "getex", "setbit", "bitfield", "pfadd", "pfmerge", "pfcount", "linsert", "spop", "restore", "restore-asking",
		"hexpire", "hpexpire", "hexpireat", "hpexpireat", "hpersist", "hsetex", "hgetex", "hgetdel", "delifeq", "delex",
		"geoadd", "geosearchstore", "sinterstore", "sunionstore", "sdiffstore", "zinterstore", "zunionstore", "zdiffstore",
		"zrangestore", "zremrangebylex")
	add(word{reread, 1, 2, 1}, "copy", "smove", "blmove", "brpoplpush")
	add(word{reread, 1, 1, 1}, "move", "sort", "georadius", "georadiusbymember")
	return all
}

// lookUp finds a command by its name in any case.
func lookUp(name []byte) (w word, known bool) {
	var lower [longestName]byte
	if len(name) > len(lower) {
		return word{}, false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	w, known = words[string(lower[:len(name)])]
	return w, known
}

// is reports whether arg equals lower, ignoring case.
func is(arg []byte, lower string) bool { return bytes.EqualFold(arg, []byte(lower)) }

// name is a key and its database.
type name struct {
	db  int
	key string
}

// appendNames appends the keys of a command that runs in database db.
func (w word) appendNames(names []name, db int, args [][]byte) []name {
	last := w.last
	if last < 0 {
		last += len(args)
	}
	if w.step > 0 {
		for i := w.first; i <= last && i < len(args); i += w.step {
			names = append(names, name{db, string(args[i])})
		}
	}
	return appendMore(names, db, args)
}

// appendMore appends keys that options of a command name: in another database, or as the
// destination of a result.
func appendMore(names []name, db int, args [][]byte) []name {
	switch option := args[0]; {
	case is(option, "copy"):
		if to, ok := databaseAfter(args, 3, "db"); ok && len(args) > 2 {
			names = append(names, name{to, string(args[2])})
		}
	case is(option, "move") && len(args) > 2:
		if to, err := strconv.Atoi(string(args[2])); err == nil {
			names = append(names, name{to, string(args[1])})
		}
	case is(option, "eval"), is(option, "evalsha"):
		names = appendNumbered(names, db, args, 2, 1)
	case is(option, "msetex"):
		names = appendNumbered(names, db, args, 1, 2)
	case is(option, "sort"), is(option, "georadius"), is(option, "georadiusbymember"):
		for i := 2; i+1 < len(args); i++ {
			if is(args[i], "store") || is(args[i], "storedist") {
				names = append(names, name{db, string(args[i+1])})
			}
		}
	}
	return names
}

// appendNumbered appends keys whose number is args[at]. They are each step-th argument after it.
func appendNumbered(names []name, db int, args [][]byte, at, step int) []name {
	if at >= len(args) {
		return names
	}
	n, err := number(args[at], maxArgs)
	if err != nil {
		return names
	}
	for i := at + 1; n > 0 && i < len(args); i, n = i+step, n-1 {
		names = append(names, name{db, string(args[i])})
	}
	return names
}

// databaseAfter returns the number after an option.
func databaseAfter(args [][]byte, from int, option string) (db int, ok bool) {
	for i := from; i+1 < len(args); i++ {
		if is(args[i], option) {
			db, err := strconv.Atoi(string(args[i+1]))
			return db, err == nil
		}
	}
	return 0, false
}
