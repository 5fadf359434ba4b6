package remote

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/limit"
	store "github.com/cellserver/cellserver/remote/engine"
)

// The errors of the double. After the first two the outcome of a swap is unknown.
var (
	errNoReply   = &store.Error{Reason: "timeout"}
	errReset     = &store.Error{Reason: "reset"}
	errTryAgain  = &store.Error{Reason: "TRYAGAIN", NotDone: true}
	errOverload  = &store.Error{Reason: "OOM", NotDone: true}
	errCrossSlot = &store.Error{Reason: "CROSSSLOT", NotDone: true}
)

// values are the values of an engine. It compares and sets like the scripts.
type values struct {
	mu      sync.Mutex
	now     func() time.Duration
	stored  map[string]kept
	changes []change // all changes, so that a failover can undo them
	ops     operations
}

type kept struct {
	raw   []byte
	until time.Duration
}

// change is the value before a write.
type change struct {
	at    time.Duration
	key   string
	was   kept
	found bool
}

// operations counts the executed operations.
type operations struct{ gets, swaps, applied, conflicts, twice int }

func newValues(now func() time.Duration) *values {
	return &values{now: now, stored: map[string]kept{}}
}

// get returns a copy of a value, nil if the key does not exist.
func (v *values) get(key []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ops.gets++
	return v.look(key)
}

func (v *values) look(key []byte) []byte {
	k, found := v.stored[string(key)]
	if !found || k.until <= v.now() {
		return nil
	}
	return bytes.Clone(k.raw)
}

// put stores raw with an expiry, or deletes the key if raw is empty, in any case.
func (v *values) put(key, raw []byte, keep time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.write(key, raw, keep)
}

func (v *values) write(key, raw []byte, keep time.Duration) {
	was, found := v.stored[string(key)]
	v.changes = append(v.changes, change{at: v.now(), key: string(key), was: was, found: found})
	if len(raw) == 0 {
		delete(v.stored, string(key))
		return
	}
	v.stored[string(key)] = kept{raw: bytes.Clone(raw), until: v.now() + keep}
}

// swapAll compares all values, then writes all or none. It also reports success if the new values
// are stored already.
func (v *values) swapAll(ws []Write) (applied bool, now [][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ops.swaps++
	same := true
	for _, w := range ws {
		same = same && bytes.Equal(tagOf(v.look(w.Key)), tagOf(w.Old))
	}
	if !same {
		if v.wasSent(ws) {
			v.ops.twice++
			return true, nil
		}
		v.ops.conflicts++
		for _, w := range ws {
			now = append(now, v.look(w.Key))
		}
		return false, now
	}
	v.ops.applied++
	for _, w := range ws {
		if len(w.New) > 0 || len(w.Old) > 0 {
			v.write(w.Key, w.New, w.Keep)
		}
	}
	return true, nil
}

// wasSent reports whether all writes of ws are stored already; that is unknown if all are deletes.
func (v *values) wasSent(ws []Write) bool {
	told := false
	for _, w := range ws {
		if !bytes.Equal(tagOf(v.look(w.Key)), tagOf(w.New)) {
			return false
		}
		told = told || len(w.New) > 0
	}
	return told
}

// takeBack restores the state at the instant, as a failover to a replica that lacks the last
// writes.
func (v *values) takeBack(to time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := len(v.changes)
	for ; i > 0 && v.changes[i-1].at > to; i-- {
		c := v.changes[i-1]
		if c.found {
			v.stored[c.key] = c.was
		} else {
			delete(v.stored, c.key)
		}
	}
	v.changes = v.changes[:i]
}

// tagOf returns the bytes that a swap compares.
func tagOf(raw []byte) []byte { return raw[:min(store.TagLen, len(raw))] }

// slotOf returns the slot of a key, or of its hash tag if it has one.
func slotOf(key []byte) int {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if n := bytes.IndexByte(key[i+1:], '}'); n > 0 {
			key = key[i+1:][:n]
		}
	}
	return int(crc32.ChecksumIEEE(key) % 16384)
}

// network describes the transport of requests. The probabilities are per request.
type network struct {
	there, back time.Duration // latency of each direction
	jitter      time.Duration // maximum additional latency in each direction, so that requests overtake each other
	drops       float64       // requests that never arrive
	cuts        float64       // replies that are lost after execution, which the client sees at once
	silences    float64       // replies that are lost, which the client notices by its time limit
	repeats     float64       // requests that arrive twice, the second time up to late afterwards
	late        time.Duration
	timeout     time.Duration // the engine's own time limit; 0: 20 ms
}

// cloud is an engine in virtual time, with the servers that use it.
type cloud struct {
	*world
	*values
	moving  map[int]bool  // slots whose keys are on two nodes
	dark    map[int]bool  // slots whose node does not answer
	refuses error         // of every write
	away    time.Duration // time until which no request arrives
	// service is the time that the engine needs for one request.
	service, busy time.Duration
	requests      int
}

func newCloud(seed uint64) *cloud {
	c := &cloud{world: newWorld(seed), moving: map[int]bool{}, dark: map[int]bool{}}
	c.values = newValues(func() time.Duration { return c.world.now })
	return c
}

// failover loses the writes of the last lag, and the requests that arrive within away.
func (c *cloud) failover(lag, away time.Duration) {
	c.takeBack(c.world.now - lag)
	c.away = c.world.now + away
}

// machine is one server: its clock, its timers and its connection to the engine.
type machine struct {
	*cloud
	network
	offset time.Duration // of its clock
	dead   bool
}

// join adds a server.
func (c *cloud) join(n network) *machine {
	if n.timeout == 0 {
		n.timeout = 20 * time.Millisecond
	}
	return &machine{cloud: c, network: n}
}

// kill ends the server at once: its timers and callbacks do not run any more. Requests that it has
// sent may still arrive.
func (m *machine) kill() { m.dead = true }

// Now returns the instant of this server's clock.
func (m *machine) Now() limit.Instant { return m.civil().Add(m.offset) }

// Elapsed returns the server's monotonic time.
func (m *machine) Elapsed() time.Duration { return m.world.now }

// AfterFunc calls f after d if the server is alive then.
func (m *machine) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return m.after(d, func() {
		if !m.dead {
			f()
		}
	})
}

// reply is the engine's answer. Its error says that nothing was changed.
type reply struct {
	applied bool
	raws    [][]byte
	err     error
}

// UpTo is a random duration.
func (m *machine) UpTo(most time.Duration) time.Duration { return m.upTo(most + 1) }

// Number is a random number.
func (m *machine) Number() uint32 { return m.random.Uint32() }

// Get reads the value of a key.
func (m *machine) Get(key []byte, done func(raw []byte, err error)) {
	own := bytes.Clone(key)
	m.request(slotOf(own), func() reply { return reply{raws: [][]byte{m.get(own)}} }, func(r reply) {
		if r.err != nil {
			done(nil, r.err)
			return
		}
		done(r.raws[0], nil)
	})
}

// Swap writes if the value is the one that was read.
func (m *machine) Swap(w Write, done func(applied bool, now []byte, err error)) {
	m.swap([]Write{w}, func(r reply) {
		var now []byte
		if len(r.raws) > 0 {
			now = r.raws[0]
		}
		done(r.applied, now, r.err)
	})
}

// SwapAll writes all if all values are those that were read.
func (m *machine) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	m.swap(ws, func(r reply) { done(r.applied, r.raws, r.err) })
}

// Slot is the number of the key's slot.
func (m *machine) Slot(key []byte) int { return slotOf(key) }

func (m *machine) swap(ws []Write, done func(r reply)) {
	sent := copies(ws)
	m.request(slotOf(sent[0].Key), func() reply { return m.execute(sent) }, func(r reply) {
		if !slices.EqualFunc(ws, sent, same) {
			panic(fmt.Sprintf("the write to %q was changed while it was under way", sent[0].Key))
		}
		done(r)
	})
}

func (m *machine) execute(ws []Write) reply {
	slot := slotOf(ws[0].Key)
	switch {
	case m.refuses != nil:
		return reply{err: m.refuses}
	case slices.ContainsFunc(ws, func(w Write) bool { return slotOf(w.Key) != slot }):
		return reply{err: errCrossSlot}
	case len(ws) > 1 && m.moving[slot]:
		return reply{err: errTryAgain}
	}
	applied, now := m.swapAll(ws)
	return reply{applied: applied, raws: now}
}

func copies(ws []Write) []Write {
	own := make([]Write, len(ws))
	for i, w := range ws {
		own[i] = Write{Key: bytes.Clone(w.Key), Old: bytes.Clone(w.Old), New: bytes.Clone(w.New), Keep: w.Keep}
	}
	return own
}

func same(a, b Write) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Old, b.Old) && bytes.Equal(a.New, b.New) && a.Keep == b.Keep
}

// request runs execute at the node of the slot, and done at the server when the reply arrives.
func (m *machine) request(slot int, execute func() reply, done func(r reply)) {
	m.requests++
	answered := false
	answer := func(r reply) {
		if !m.dead && !answered {
			answered = true
			done(r)
		}
	}
	m.after(m.timeout, func() { answer(reply{err: errNoReply}) })
	if m.dark[slot] {
		return
	}
	if m.chance(m.repeats) {
		m.arrive(m.there+m.upTo(m.late), func() { execute() })
	}
	if m.chance(m.drops) {
		return
	}
	m.arrive(m.there+m.upTo(m.jitter), func() {
		r := execute()
		switch {
		case m.chance(m.silences):
			return
		case m.chance(m.cuts):
			r = reply{err: errReset}
		}
		m.after(m.back+m.upTo(m.jitter), func() { answer(r) })
	})
}

// arrive runs execute when the engine is free.
func (m *machine) arrive(d time.Duration, execute func()) {
	m.after(d, func() {
		if m.world.now < m.away {
			return
		}
		m.busy = max(m.world.now, m.busy) + m.service
		m.after(m.busy-m.world.now, execute)
	})
}

var _, _ engine = (*machine)(nil), (*instant)(nil)

// instant is an engine that answers at once, each time on a goroutine of its own, with the clock of
// the process.
type instant struct {
	*values
	started time.Time
}

func newInstant() *instant {
	i := &instant{started: time.Now()}
	i.values = newValues(i.Elapsed)
	return i
}

// Now is the instant.
func (i *instant) Now() limit.Instant { return epoch.Add(i.Elapsed()) }

// Elapsed is the time since it was made.
func (i *instant) Elapsed() time.Duration { return time.Since(i.started) }

// AfterFunc is time.AfterFunc.
func (i *instant) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

// UpTo is a random duration.
func (i *instant) UpTo(most time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(most) + 1))
}

// Number is a random number.
func (i *instant) Number() uint32 { return rand.Uint32() }

// Get reads.
func (i *instant) Get(key []byte, done func(raw []byte, err error)) {
	go done(i.get(key), nil)
}

// Swap compares and sets.
func (i *instant) Swap(w Write, done func(applied bool, now []byte, err error)) {
	i.SwapAll([]Write{w}, func(applied bool, now [][]byte, err error) {
		if applied || err != nil {
			done(applied, nil, err)
			return
		}
		done(false, now[0], nil)
	})
}

// SwapAll compares and sets.
func (i *instant) SwapAll(ws []Write, done func(applied bool, now [][]byte, err error)) {
	go func() {
		for _, w := range ws[1:] {
			if slotOf(w.Key) != slotOf(ws[0].Key) {
				done(false, nil, errCrossSlot)
				return
			}
		}
		applied, now := i.swapAll(ws)
		done(applied, now, nil)
	}()
}

// Slot is the number of the key's slot.
func (i *instant) Slot(key []byte) int { return slotOf(key) }
