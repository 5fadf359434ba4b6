package records_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

var (
	cloudFrom  = flag.Uint64("from", 0, "the first seed of TestCloud")
	cloudHours = flag.Int("hours", 0, "how many hours TestCloud plays; 0 is the usual number")
	cloudSeed  = flag.Int64("seed", -1, "play one seed of TestCloud, and print its events")
)

// hoursOfCloud are the hours of one cloud.
const hoursOfCloud = 2

// keys is the number of keys, and names has the names of policies.
const keys = 4

var names = []string{"api", "org", "filed"}

// cloud is a world of virtual time, with an engine whose nodes fail and servers whose requests fail.
type cloud struct {
	timeline
	t        *testing.T
	rng      *rand.Rand
	seed     uint64
	engine   *cluster
	members  []*member
	changes  []*change
	numbers  int64
	replicas int  // at the start
	files    bool // servers have policy files
	calm     bool // faults are over
	prints   bool

	log, pairs, step int // the bounds of the records

	slow, lossy time.Duration // requests are slow, or fail, until then
	losses      int           // in percent

	calls, apart, failovers, restarts, partitions, reloads int
	lost                                                   int64
}

func newCloud(t *testing.T, seed uint64) *cloud {
	w := &cloud{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 31)), numbers: 1000}
	w.replicas, w.files = w.rng.IntN(3), w.rng.IntN(2) == 0
	w.log, w.pairs, w.step = 4+w.rng.IntN(30), 300+w.rng.IntN(2000), 1+w.rng.IntN(8)
	w.engine = newCluster(w, w.replicas)
	for i := range 2 + w.rng.IntN(3) {
		w.members = append(w.members, w.begin(fmt.Sprintf("server %d", i)))
	}
	return w
}

// instant is the civil instant.
func (w *cloud) instant() limit.Instant { return cloudEpoch.Add(w.now) }

func (w *cloud) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }

func (w *cloud) skew() time.Duration { return w.upTo(2*mostSkew) - mostSkew }

// number returns another number for limits.
func (w *cloud) number() int64 {
	w.numbers += 10
	return w.numbers
}

func (w *cloud) fail(format string, args ...any) {
	w.t.Helper()
	require.FailNow(w.t, "a promise is broken", "seed %d at %v: %s", w.seed, w.now, fmt.Sprintf(format, args...))
}

func (w *cloud) print(format string, args ...any) {
	if w.prints {
		w.t.Logf("%12v  %s", w.now, fmt.Sprintf(format, args...))
	}
}

// engineAway notes that no server reaches the engine for d.
func (w *cloud) engineAway(d time.Duration) {
	w.failovers++
	for _, m := range w.members {
		m.fault(w.now, w.now+d)
	}
}

// tell tells the servers of a change.
func (w *cloud) tell() {
	for _, m := range w.members {
		w.after(m.trip(), m.wake)
	}
}

// any returns a server.
func (w *cloud) any() *member { return w.members[w.rng.IntN(len(w.members))] }

// often calls f again and again until faults are over, after random times of the given mean.
func (w *cloud) often(mean time.Duration, f func()) {
	w.after(w.upTo(2*mean), func() {
		if !w.calm {
			f()
			w.often(mean, f)
		}
	})
}

// live has everything happen from now on.
func (w *cloud) live() {
	w.often(40*time.Second, w.burst)
	w.often(3*time.Second, w.decide)
	w.often(time.Minute, func() { m := w.any(); m.run(m.tidy) })
	w.often(100*time.Second, w.fault)
}

// burst lets several administrators change policies at the same time, and clients call during that and afterwards.
func (w *cloud) burst() {
	for range 1 + w.rng.IntN(1+w.rng.IntN(6)) {
		w.after(w.upTo(500*time.Millisecond), w.change)
	}
	for range 8 {
		w.after(w.upTo(4*time.Second), w.decide)
	}
}

func (w *cloud) decide() { w.any().decides(w.rng) }

// fault lets something go wrong.
func (w *cloud) fault() {
	switch w.rng.IntN(11) {
	case 0, 1:
		w.burst() // so that it takes changes with it
		w.after(w.upTo(500*time.Millisecond), func() {
			if w.engine.master != nil {
				w.print("the master dies")
				w.engine.die(200*time.Millisecond + w.upTo(8*time.Second))
			}
		})
	case 2:
		m := w.any()
		m.parted = w.now + w.upTo(time.Duration(1+w.rng.IntN(10))*time.Minute)
		m.fault(w.now, m.parted)
		w.partitions++
		w.print("%s is cut off until %v", m.name, m.parted)
	case 3:
		w.lossy, w.losses = w.now+w.upTo(2*time.Minute), w.rng.IntN(50)
		w.print("%d %% of all requests fail until %v", w.losses, w.lossy)
	case 4:
		w.slow = w.now + w.upTo(2*time.Minute)
	case 5:
		m := w.any()
		m.deaf = w.now + w.upTo(2*time.Minute)
	case 6:
		w.restart(w.rng.IntN(len(w.members)))
	case 7:
		m := w.any()
		m.run(m.lay)
	default:
		for _, r := range w.engine.replicas {
			w.hold(r)
		}
	}
}

// hold lets a replica fall behind.
func (w *cloud) hold(r *node) {
	r.lag = w.upTo(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
	switch w.rng.IntN(4) {
	case 0:
		r.stuck = w.now + w.upTo(time.Minute)
	case 1:
		r.connected = false
		w.after(w.upTo(time.Minute), func() {
			r.connected = true
			w.engine.replicate(r)
		})
	}
}

// restart kills a server and starts it again.
func (w *cloud) restart(i int) {
	w.restarts++
	m := w.members[i]
	w.print("%s is started again", m.name)
	m.kill()
	w.members[i] = w.begin(m.name)
}

// change has a server make a change.
func (w *cloud) change() {
	m := w.any()
	c := w.draw(m)
	w.changes = append(w.changes, c)
	m.run(func(p *process) {
		m.try(p, c)
		w.print("%s: %s %d", m.name, c.id, c.outcome)
	})
}

// draw draws a change.
func (w *cloud) draw(m *member) *change {
	c := &change{id: fmt.Sprintf("change %d", len(w.changes)), of: m}
	name := names[w.rng.IntN(len(names))]
	is := op{called: called{policy.Main, name, ""}, item: item{limit: w.number(), until: limit.MaxInstant}}
	pattern := "k*"
	if w.rng.IntN(4) > 0 {
		pattern = fmt.Sprintf("k%d", w.rng.IntN(keys))
	}
	var lasts time.Duration // 0 for ever
	if w.rng.IntN(2) == 0 {
		lasts = time.Duration(1+w.rng.IntN(120)) * time.Second
	}
	switch n := w.rng.IntN(20); {
	case n < 3:
		c.plan = planned(is, 0)
	case n < 6:
		is.called = called{policy.Override, name, pattern}
		c.plan = planned(is, lasts)
	case n < 11:
		is.called, is.limit = called{policy.Block, name, pattern}, 0
		c.plan, c.urgent = planned(is, lasts), true
	case n < 12:
		is.called, is.limit = called{policy.Exempt, name, pattern}, 0
		c.plan, c.urgent = planned(is, lasts), true
	case n < 14:
		is.called, is.limit, is.factor = called{policy.Boost, name, pattern}, 0, 2000+1000*w.rng.Int64N(3)
		c.plan, c.urgent = planned(is, max(lasts, time.Second)), true
	case n < 18:
		kind := []policy.Kind{policy.Override, policy.Block, policy.Block, policy.Exempt, policy.Boost}[w.rng.IntN(5)]
		is = op{called: called{kind, name, pattern}, deletes: true}
		c.plan, c.urgent = planned(is, 0), kind != policy.Override
	case n < 19:
		is.called = called{policy.Candidate, name, ""}
		c.plan = w.trying(is)
	default:
		if w.rng.IntN(3) == 0 {
			is.deletes, is.all = true, true
		}
		c.plan = planned(is, 0)
	}
	return c
}

// planned returns the plan of one part, which lasts for a time; 0 is for ever.
func planned(is op, lasts time.Duration) func(b *policy.Builder, now limit.Instant) ([]op, error) {
	begun := false
	return func(b *policy.Builder, now limit.Instant) ([]op, error) {
		if lasts > 0 && !begun {
			is.until, begun = now.Add(lasts), true
		}
		switch main := b.Get(policy.Main, is.policy, ""); {
		case is.all && main == nil, is.deletes && !is.all && b.Get(is.kind, is.policy, is.pattern) == nil:
			return nil, nil
		case main == nil && is.kind != policy.Main && !is.deletes:
			return nil, errNoPolicy
		}
		return []op{is}, nil
	}
}

// trying returns the plan of a candidate. If there is one, it becomes the policy.
func (w *cloud) trying(is op) func(b *policy.Builder, now limit.Instant) ([]op, error) {
	set := planned(is, 0)
	return func(b *policy.Builder, now limit.Instant) ([]op, error) {
		candidate := b.Get(policy.Candidate, is.policy, "")
		if candidate == nil || b.Get(policy.Main, is.policy, "") == nil {
			return set(b, now)
		}
		promoted := op{called: called{policy.Main, is.policy, ""}, item: item{until: limit.MaxInstant}}
		_, err := fmt.Sscanf(candidate.Limits.Text[0], "SW %d 60", &promoted.limit)
		return []op{promoted, {called: is.called, deletes: true}}, err
	}
}

// editsOf returns the edits of ops.
func editsOf(t *testing.T, b *policy.Builder, ops []op, now limit.Instant) (edits []registry.Edit) {
	for _, o := range ops {
		e := &policy.Entry{Kind: o.kind, Policy: o.policy, Pattern: o.pattern, Factor: o.factor, Until: o.until, Since: now}
		switch {
		case o.all:
			b.Each(o.policy, func(e *policy.Entry) bool {
				edits = append(edits, registry.Delete(e))
				return true
			})
			continue
		case o.deletes:
			edits = append(edits, registry.Delete(e))
			continue
		case o.limit > 0:
			var err resp.Error
			e.Limits, err = policy.ParseLimits([][]byte{[]byte("SW"), fmt.Append(nil, o.limit), []byte("60")}, false, policy.Bounds{})
			require.Empty(t, err)
		}
		edits = append(edits, registry.Set(e))
	}
	return edits
}

// settle ends all faults, and lets the servers catch up.
func (w *cloud) settle() {
	w.calm, w.lossy, w.slow = true, 0, 0
	for _, m := range w.members {
		m.parted, m.deaf = min(m.parted, w.now), 0
	}
	w.runUntil(w.now + time.Minute) // replies of changes that were under way have come, too
}

// check compares the servers at the end, and each change with what its client knows.
func (w *cloud) check() {
	e := w.engine
	var history []registry.Change
	for i, m := range w.members {
		require.Equal(w.t, e.head.Version, m.store.Version(), "seed %d: %s", w.seed, m.name)
		want := view{m.file, e.head.entries}.inForce(w.instant(), slack)
		require.Equal(w.t, want, tableInForce(m.registry.Table(), w.instant(), slack), "seed %d: the table of %s", w.seed, m.name)
		is := m.registry.Changes(registry.Which{Count: registry.MaxChanges})
		if i == 0 {
			history = is
		}
		require.Equal(w.t, history, is, "seed %d: RL.CHANGES of %s", w.seed, m.name)
		if lost := m.store.Lost(); lost < m.leastLost || lost > m.mostLost {
			w.fail("%s has counted %d lost changes, which are from %d to %d", m.name, lost, m.leastLost, m.mostLost)
		}
		w.lost += m.store.Lost()
	}
	times := map[string]int{}
	for _, is := range history {
		times[is.User]++
	}
	for _, c := range w.changes {
		w.checkChange(c, times[c.id])
	}
}

// checkChange checks what became of a change, which is in the history so many times.
func (w *cloud) checkChange(c *change, times int) {
	kept := 0
	for _, v := range c.versions {
		if w.engine.has(v) {
			kept++
		}
	}
	switch {
	case kept > 1 || times != kept:
		w.fail("%s was made %d times, and is %d times in RL.CHANGES", c.id, kept, times)
	case (c.outcome == notMade || c.outcome == nothing || c.outcome == taken) && kept != 0:
		w.fail("%s was made, and its client was told that it was not: %d", c.id, c.outcome)
	case (c.outcome == made || c.outcome == alone) && len(c.versions) == 0:
		w.fail("%s was not made, and its client was told that it was", c.id)
	case c.confirmed && kept == 0 && c.outcome == made:
		w.fail("%s was lost after a replica had confirmed it", c.id)
	}
}

// TestCloud lets servers change policies and decide calls while requests fail, servers are cut off and started again, the
// engine fails over and loses its latest changes, the log is too short, and clocks are apart. At each call it checks that the
// answer is that of a table which was in force within the published bound, or when the server was cut off, and that the age
// of the table is true. At the end all servers have the same table, which is that of a model, and each change is there once
// if it was acknowledged and no failover has taken it. A change that a replica has confirmed is never lost.
func TestCloud(t *testing.T) {
	effort.Alone(t)
	if *cloudSeed >= 0 {
		playCloud(t, uint64(*cloudSeed), true)
		return
	}
	hours := *cloudHours
	if hours == 0 {
		hours = effort.Steps(6, 1000)
	}
	begun := time.Now()
	var all cloud
	changes, acknowledged, versions, taken := 0, 0, 0, 0
	for i := range uint64((hours + hoursOfCloud - 1) / hoursOfCloud) {
		w := playCloud(t, *cloudFrom+i, false)
		all.calls, all.apart, all.failovers = all.calls+w.calls, all.apart+w.apart, all.failovers+w.failovers
		all.restarts, all.partitions, all.lost = all.restarts+w.restarts, all.partitions+w.partitions, all.lost+w.lost
		all.reloads += w.reloads
		changes, versions, taken = changes+len(w.changes), versions+len(w.engine.versions), taken+w.engine.lost
		for _, c := range w.changes {
			if c.outcome == made {
				acknowledged++
			}
		}
	}
	t.Logf("%d hours in %v: %d calls, of them %d of servers that were cut off; %d changes, of them %d acknowledged; %d versions, of them %d lost by the engine; servers counted %d; %d failovers, %d partitions, %d restarts; all records were read %d times",
		hours, time.Since(begun).Round(time.Second), all.calls, all.apart, changes, acknowledged, versions, taken, all.lost, all.failovers, all.partitions, all.restarts, all.reloads)
	require.Positive(t, acknowledged)
	if hours >= 100 {
		require.Positive(t, taken)
		require.Positive(t, all.lost)
	}
}

// playCloud plays the cloud of a seed.
func playCloud(t *testing.T, seed uint64, prints bool) *cloud {
	w := newCloud(t, seed)
	w.prints = prints
	w.live()
	w.runUntil(hoursOfCloud * time.Hour)
	w.settle()
	w.check()
	for _, m := range w.members {
		m.kill()
	}
	return w
}
