package redis

import (
	"bytes"
	"strconv"
)

// action says what to do with a command of the stream.
type action uint8

const (
	// The zero action means that the command is not executed, and is counted by its name.
	_ action = iota
	// put means that the Runner executes the command, whatever the values of its keys are.
	put
	// run means that the Runner executes the command if its keys exist here, because the outcome
	// depends on their values.
	run
	// reread means that the command is not executed, and its keys are read from the primary.
	reread
	// ignore means that the command changes no key, so it is skipped.
	ignore
	// flush means that the command empties one database or all databases.
	flush
	// The actions below are for commands that control the stream itself: SELECT, MULTI, EXEC,
	// REPLCONF and SWAPDB.
	selects
	begins
	commits
	replconf
	swap
)

// word describes a command: its action and its keys. The keys are the arguments at the indexes
// first, first+step and so on, up to last. A negative last counts from the end. A step of 0 means
// that there are no such keys.
type word struct {
	action            action
	first, last, step int
}

// words has the commands that Redis and Valkey send to replicas and that change a value which
// this server can store, by their names in lower case. It also has the commands that are ignored
// on purpose. Newer versions rewrite some of the commands for their replicas. Commands with a
// relative time to live are not executed here, because the time would count from the execution.
// Their keys are read instead.
var words = makeWords()

func makeWords() map[string]word {
	all := map[string]word{
		"select": {action: selects}, "multi": {action: begins}, "exec": {action: commits},
		"replconf": {action: replconf}, "swapdb": {action: swap},
		"flushdb": {action: flush}, "flushall": {action: flush},
		"bitop": {reread, 2, 2, 1},
		// Redis before 7 can be configured to replicate scripts verbatim. Redis 8.4 sends MSETEX.
		// See appendMore for the keys of these commands.
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

// lookUp returns the word for the command called name, in upper or lower case. known is false if
// words does not have the command.
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

func is(arg []byte, lower string) bool { return bytes.EqualFold(arg, []byte(lower)) }

// name identifies a key by its name and its database.
type name struct {
	db  int
	key string
}

// appendNames appends the keys of the command args, which runs in the database db, to names. A key
// may belong to another database.
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

// appendMore appends the keys that are named by options of the command args: a key in another
// database, or a destination. It also appends the keys of commands that contain the number of
// their keys.
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

// appendNumbered appends keys of the command args to names. args[at] is the number of keys. The
// keys are args[at+1], args[at+1+step] and so on. It appends nothing if args[at] is no number.
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

// databaseAfter returns db, the number that follows the argument option, if option is at index from
// or later. ok is false if there is no such argument, or no number follows it.
func databaseAfter(args [][]byte, from int, option string) (db int, ok bool) {
	for i := from; i+1 < len(args); i++ {
		if is(args[i], option) {
			db, err := strconv.Atoi(string(args[i+1]))
			return db, err == nil
		}
	}
	return 0, false
}
