package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/gcra"
)

// findings holds what was read from a server.
type findings struct {
	address string            // address of the server, in the form for messages
	info    map[string]string // the fields of INFO, except for those that have a field below
	calls   map[string]int64  // number of calls of each command, with the names of commandstats
	keys    map[int]int64     // number of keys in each database
	config  map[string]string // the configuration; nil if it may not be read
	modules []string
	users   int // number of users; 0 if it is unknown

	looked    int
	kinds     map[string]*keysOfKind
	unread    []string // what could not be read, because it is not permitted or does not exist
	outOfTime bool
}

// keysOfKind holds the figures of the sampled keys of one kind of value.
type keysOfKind struct {
	keys, forever   int
	elements, bytes int64 // figures of the largest value
	longestKey      int
}

// limiterKind is the kind of the values of redis-cell: a TAT in decimal with a TTL.
const limiterKind = "limiter of redis-cell"

// examine reads the properties of a server, and at most sample of its keys. If the time of ctx is
// up while it samples keys, it returns what it has read so far. What the user may not read is
// listed in unread.
func examine(ctx context.Context, o *redis.Options, sample int) (_ *findings, err error) {
	c := redis.NewClient(o)
	defer func() { err = errors.Join(err, c.Close()) }()
	c.AddHook(onlyRead{})
	f := &findings{kinds: make(map[string]*keysOfKind)}
	text, err := c.Info(ctx, "all").Result()
	if err != nil {
		return nil, err
	}
	f.readInfo(text)
	if f.config, err = c.ConfigGet(ctx, "*").Result(); err != nil {
		if !isReply(err) {
			return nil, err
		}
		f.config = nil
		f.unread = append(f.unread, "CONFIG GET ("+err.Error()+"), so its options were not examined")
	}
	if err := f.readModules(ctx, c); err != nil {
		return nil, err
	}
	if users, err := c.Do(ctx, "ACL", "USERS").Slice(); err == nil {
		f.users = len(users)
	} else if !isReply(err) {
		return nil, err
	}
	if err := f.sampleAll(ctx, o, sample); err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		f.outOfTime = true
	}
	return f, nil
}

// readInfo parses the text of INFO. The field cellserver is "yes" if the text comes from a
// cellserver.
func (f *findings) readInfo(text string) {
	f.info, f.calls, f.keys = make(map[string]string), make(map[string]int64), make(map[int]int64)
	for _, line := range strings.Split(text, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if name == "# Ratelimit" {
			f.info["cellserver"] = "yes"
		}
		if !ok {
			continue
		}
		if cmd, is := strings.CutPrefix(name, "cmdstat_"); is {
			f.calls[cmd] = fieldOf(value, "calls")
			continue
		}
		if db, err := strconv.Atoi(strings.TrimPrefix(name, "db")); err == nil && strings.HasPrefix(name, "db") {
			f.keys[db] = fieldOf(value, "keys")
			continue
		}
		f.info[name] = value
	}
}

// fieldOf returns the number in the field called name of a line such as "calls=1,usec=2"; 0 if
// there is none.
func fieldOf(line, name string) int64 {
	for _, field := range strings.Split(line, ",") {
		if v, ok := strings.CutPrefix(field, name+"="); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}

// readModules reads the names of the modules: a list of maps, or in RESP2 of lists. If the server
// refuses the command, readModules adds it to unread.
func (f *findings) readModules(ctx context.Context, c *redis.Client) error {
	modules, err := c.Do(ctx, "MODULE", "LIST").Slice()
	if err != nil {
		if !isReply(err) {
			return err
		}
		f.unread = append(f.unread, "MODULE LIST ("+err.Error()+")")
		return nil
	}
	for _, m := range modules {
		switch m := m.(type) {
		case map[any]any:
			f.modules = append(f.modules, fmt.Sprint(m["name"]))
		case []any:
			if at := slices.Index(m, any("name")); at >= 0 && at+1 < len(m) {
				f.modules = append(f.modules, fmt.Sprint(m[at+1]))
			}
		}
	}
	return nil
}

// sampleAll samples keys of every database, in proportion to its size.
func (f *findings) sampleAll(ctx context.Context, o *redis.Options, sample int) error {
	total := int64(0)
	for _, n := range f.keys {
		total += n
	}
	for db, n := range f.keys {
		own := *o
		own.DB = db
		c := redis.NewClient(&own)
		c.AddHook(onlyRead{})
		err := f.sampleDatabase(ctx, c, int(int64(sample)*n/max(1, total)))
		if err = errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
	return nil
}

// doctorStep is the number of keys that are examined in one step.
const doctorStep = 100

// sampleDatabase samples at most as many keys as most says. SCAN may return few keys and take long.
// So after each step the doctor pauses as long as the step took, and uses at most half of one
// connection's time. It does not scan a large sparse table to its end for a few keys. If the server
// refuses SCAN, sampleDatabase adds that to unread.
func (f *findings) sampleDatabase(ctx context.Context, c *redis.Client, most int) error {
	var cursor uint64
	for step, looked := 0, 0; looked < most && step < 10+most/10; step++ {
		began := time.Now()
		keys, next, err := c.Scan(ctx, cursor, "*", doctorStep).Result()
		if isReply(err) {
			f.unread = append(f.unread, "SCAN ("+err.Error()+"), so its keys were not examined")
			return nil
		}
		if err != nil {
			return err
		}
		keys = keys[:min(len(keys), most-looked)]
		if err := f.look(ctx, c, keys); err != nil {
			return err
		}
		looked += len(keys)
		if cursor = next; cursor == 0 {
			return nil
		}
		rest := time.NewTimer(time.Since(began))
		select {
		case <-ctx.Done():
			rest.Stop()
			return ctx.Err()
		case <-rest.C:
		}
	}
	return nil
}

// sizes maps types to the commands that count the elements of a value.
var sizes = map[string]string{"string": "STRLEN", "hash": "HLEN", "list": "LLEN", "set": "SCARD", "zset": "ZCARD"}

// look adds the types and the sizes of some keys to the findings, in two round trips. It leaves out
// keys that no longer exist or may not be read.
func (f *findings) look(ctx context.Context, c *redis.Client, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	pipe := c.Pipeline()
	types, ttls := make([]*redis.StatusCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, k := range keys {
		types[i], ttls[i] = pipe.Type(ctx, k), pipe.PTTL(ctx, k)
	}
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return err
	}
	starts, counts, memory := make([]*redis.StringCmd, len(keys)), make([]*redis.Cmd, len(keys)), make([]*redis.IntCmd, len(keys))
	for i, k := range keys {
		memory[i] = pipe.MemoryUsage(ctx, k)
		if count := sizes[types[i].Val()]; count != "" {
			counts[i] = pipe.Do(ctx, count, k)
		}
		if types[i].Val() == "string" {
			starts[i] = pipe.GetRange(ctx, k, 0, longestTAT-1)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return err
	}
	for i, k := range keys {
		kind := types[i].Val()
		if kind == "none" || types[i].Err() != nil {
			continue // the key does not exist any more, or may not be read
		}
		f.looked++
		if kind == "string" {
			kind = kindOfString(starts[i], ttls[i].Val())
		}
		n := int64(0)
		if counts[i] != nil {
			n, _ = counts[i].Int64()
		}
		f.note(kind, k, ttls[i].Val(), n, memory[i].Val())
	}
	return nil
}

// kindOfString returns the kind of a string: limiterKind, HyperLogLog or string. start has the
// beginning of the value. The kind of a string that cannot be read is string.
func kindOfString(start *redis.StringCmd, ttl time.Duration) string {
	text, err := start.Bytes()
	if err != nil {
		return "string"
	}
	if strings.HasPrefix(string(text), "HYLL") {
		return "HyperLogLog"
	}
	// A TAT is in nanoseconds since 1970, which no plausible counter reaches.
	if tat, err := gcra.ParseDecimal(text); err == nil && ttl > 0 && tat > 1e18 {
		return limiterKind
	}
	return "string"
}

func (f *findings) note(kind, key string, ttl time.Duration, elements, bytes int64) {
	k := f.kinds[kind]
	if k == nil {
		k = &keysOfKind{}
		f.kinds[kind] = k
	}
	k.keys++
	if ttl < 0 {
		k.forever++
	}
	k.longestKey = max(k.longestKey, len(key))
	k.elements, k.bytes = max(k.elements, elements), max(k.bytes, bytes)
}
