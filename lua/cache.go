package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync"
)

// Cache keeps compiled scripts by SHA, as SCRIPT LOAD and EVAL do. Scripts that
// were loaded stay until Flush; those that EVAL left there make room for newer
// ones beyond a number, oldest first. It may be used by several goroutines.
type Cache struct {
	// maxEval bounds the scripts that EVAL has left.
	maxEval int

	mu      sync.RWMutex
	scripts map[string]*cached
	// order has the scripts left by EVAL, oldest first. One that was loaded since
	// stays in it, and is passed over when its turn comes.
	order []string
	bytes int64
}

type cached struct {
	script *Script
	loaded bool
}

// NewCache returns an empty cache that keeps at most maxEval scripts of EVAL (500
// as Redis 7.4 has it, if 0 is given).
func NewCache(maxEval int) *Cache {
	if maxEval <= 0 {
		maxEval = 500
	}
	return &Cache{maxEval: maxEval, scripts: map[string]*cached{}}
}

// SHA returns the SHA-1 of source in 40 lower-case hexadecimal digits.
func SHA(source []byte) string {
	sum := sha1.Sum(source)
	return hex.EncodeToString(sum[:])
}

// Lookup returns the script of a SHA in either case, or nil.
func (c *Cache) Lookup(sha []byte) *Script {
	if len(sha) != 2*sha1.Size {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry := c.scripts[string(sha)]
	if entry == nil {
		entry = c.scripts[strings.ToLower(string(sha))]
	}
	if entry == nil {
		return nil
	}
	return entry.script
}

// Eval returns the script of source, compiled now if it is new.
func (c *Cache) Eval(source []byte) (*Script, error) { return c.get(source, false) }

// Load is Eval for SCRIPT LOAD: the script stays until Flush.
func (c *Cache) Load(source []byte) (*Script, error) { return c.get(source, true) }

func (c *Cache) get(source []byte, load bool) (*Script, error) {
	sum := sha1.Sum(source)
	var sha [2 * sha1.Size]byte
	hex.Encode(sha[:], sum[:])
	c.mu.RLock()
	entry := c.scripts[string(sha[:])]
	done := entry != nil && (entry.loaded || !load)
	c.mu.RUnlock()
	if done {
		return entry.script, nil
	}
	// Outside the lock: compiling takes long, and doing it twice does no harm.
	script, err := Compile(source)
	if err != nil {
		return nil, err
	}
	return c.add(script, load), nil
}

func (c *Cache) add(script *Script, load bool) *Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.scripts[script.sha]; entry != nil {
		entry.loaded = entry.loaded || load
		return entry.script
	}
	c.scripts[script.sha] = &cached{script: script, loaded: load}
	c.bytes += script.weight()
	if !load {
		c.order = append(c.order, script.sha)
		c.evict()
	}
	return script
}

// evict drops the oldest scripts of EVAL that are too many.
func (c *Cache) evict() {
	for len(c.order) > c.maxEval {
		oldest := c.order[0]
		c.order = c.order[1:]
		if entry := c.scripts[oldest]; entry != nil && !entry.loaded {
			delete(c.scripts, oldest)
			c.bytes -= entry.script.weight()
		}
	}
}

// Flush forgets every script. Runs that execute one go on.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts = map[string]*cached{}
	c.order, c.bytes = nil, 0
}

// Len returns the number of scripts kept.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.scripts)
}

// Bytes estimates the memory of the scripts kept.
func (c *Cache) Bytes() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.bytes
}

// weight estimates the memory of a script: its text, and about ten bytes of code
// and positions for each byte of it.
func (s *Script) weight() int64 { return 512 + 11*int64(len(s.source)) }
