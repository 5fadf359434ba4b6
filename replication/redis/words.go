package redis

import (
	"bytes"
	"strconv"
)

// action is what is done with a command of the stream.
type action uint8

const (
	// The zero action: it is counted by name.
	_ action = iota
	// put: the Runner executes it, whatever its keys hold.
	put
	// run: the Runner executes it if its keys are here, since the outcome depends on what they
	// hold.
	run
	// reread: its effect cannot be had by executing it, so its keys are read.
	reread
	// ignore: it changes no key.
	ignore
	// flush empties one database or all.
	flush
	// The following are of the stream itself.
	selects
	begins
	commits
	replconf
	swap
)

// word is what is known of a command: the action, and where its keys are: from first to
// last, counted from the end if negative, each step-th word.
type word struct {
	action            action
	first, last, step int
}

// words has every command that Redis and Valkey send to replicas and that changes a value
// which this server can hold, and those that are ignored by intent. Some of them newer
// versions rewrite for their replicas. Those with a time to live count from when they run, so
// they are not run a second time: their keys are read.
var words = makeWords()

func makeWords() map[string]word {
	all := map[string]word{
		"select": {action: selects}, "multi": {action: begins}, "exec": {action: commits},
		"replconf": {action: replconf}, "swapdb": {action: swap},
		"flushdb": {action: flush}, "flushall": {action: flush},
		"bitop": {reread, 2, 2, 1},
		// Redis before 7 can be told to send scripts as they are; Redis 8.4 sends MSETEX. See
		// appendMore for their keys.
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

// lookUp finds a command by the name it came with.
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

// is compares a word of a command, whatever its case.
func is(arg []byte, lower string) bool { return bytes.EqualFold(arg, []byte(lower)) }

// name is a key of a database.
type name struct {
	db  int
	key string
}

// appendNames appends the keys that the command changes, of database db.
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

// appendMore appends what options of a command name: another database, or where a result is
// stored.
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

// appendNumbered appends keys whose number is the word at: each step-th word behind it.
func appendNumbered(names []name, db int, args [][]byte, at, step int) []name {
	if at >= len(args) {
		return names
	}
	n, err := number(args[at], mostArgs)
	if err != nil {
		return names
	}
	for i := at + 1; n > 0 && i < len(args); i, n = i+step, n-1 {
		names = append(names, name{db, string(args[i])})
	}
	return names
}

// databaseAfter finds the number behind an option.
func databaseAfter(args [][]byte, from int, option string) (db int, ok bool) {
	for i := from; i+1 < len(args); i++ {
		if is(args[i], option) {
			db, err := strconv.Atoi(string(args[i+1]))
			return db, err == nil
		}
	}
	return 0, false
}
