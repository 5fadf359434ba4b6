package records_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/clock"
	"github.com/cellserver/cellserver/remote/records"
)

const (
	// inForce is the published bound within which a change is in force on each server that reaches the store.
	inForce = 1500 * time.Millisecond
	// slack is the most by which clocks are apart, with the way of messages.
	slack = 600 * time.Millisecond
	// mostSkew is the greatest difference between a node's clock and the civil time.
	mostSkew = 150 * time.Millisecond

	// These are the times of package server: of followPolicies and of its wakes.
	followPeriod = time.Second
	followFirst  = 50 * time.Millisecond
	followGap    = 20 * time.Millisecond
)

// member is one run of a server: its registry, its records, its clock and its engine of commands.
type member struct {
	w        *cloud
	name     string
	store    *records.Store
	registry *registry.Registry
	clock    clock.Clock
	server   *remotedouble.Server
	client   *remotedouble.Session
	file     entries

	storing, changing, confirming turn // of the mutexes of the store, of the registry, and of those that wait for replicas
	processes                     []*process

	// waits and woken are about its process that follows the records; calm is when that may go on because of a message.
	waits, woken bool
	settles      bool // a process is about to put the records in force that have come
	nap          uint64
	wakes        func()
	calm         time.Duration

	parted              time.Duration // it is cut off until then
	deaf                time.Duration // it gets no messages of changes until then
	away, back          time.Duration // the latest time in which it did not reach the store
	known, mourned      []*version    // the versions that it has had; those that the engine has lost, and that it has not counted yet
	leastLost, mostLost int64         // what it has to count of lost versions
	dead                bool
}

// begin starts a server.
func (w *cloud) begin(name string) *member {
	m := &member{w: w, name: name, away: w.now, back: w.now}
	m.registry = registry.New(registry.Options{Shared: true, Failed: func(err error) { w.fail("a record cannot be read: %v", err) }})
	m.registry.SetFile("policies.yaml")
	m.store = records.New(records.Options{
		Engine: connection{m}, Observer: observer{m.registry, w}, Now: m.now, Moved: m.moved, ID: w.rng.Uint64,
	})
	m.store.Bound(w.log, w.pairs, w.step, 200)
	var err error
	m.server, err = remotedouble.NewServer(cloudEpoch, 1, func(o *env.Options) {
		o.Policies, o.PoliciesUnread, o.PolicyUnreadable = m.registry, m.store.Unread, func([]byte, []byte) (bool, error) { return false, nil }
	})
	require.NoError(w.t, err)
	m.client, err = remotedouble.Open(m.server.Engine)
	require.NoError(w.t, err)
	m.lay(&process{})
	m.run(func(p *process) {
		for {
			if m.sample(); !m.clock.Ready() { // the engine was away
				p.sleep(followFirst)
				continue
			}
			p.sleep(5 * time.Second)
		}
	})
	m.run(m.follow)
	return m
}

// observer counts how often all records are read.
type observer struct {
	*registry.Registry
	w *cloud
}

func (o observer) ObserveAll(pairs iter.Seq2[[]byte, []byte]) {
	o.w.reloads++
	o.Registry.ObserveAll(pairs)
}

// run starts a process of the server.
func (m *member) run(f func(p *process)) {
	m.processes = append(m.processes, m.w.start(f))
	if len(m.processes) > 50 {
		is := m.processes[:0]
		for _, p := range m.processes {
			if !p.over {
				is = append(is, p)
			}
		}
		m.processes = is
	}
}

// kill ends the run of the server.
func (m *member) kill() {
	m.dead = true
	for _, p := range m.processes {
		p.kill()
	}
	m.end()
}

func (m *member) end() {
	if is := m.store.Lost(); is > m.mostLost+int64(len(m.mourned)) {
		m.w.fail("%s has counted %d lost changes, of %d", m.name, is, m.mostLost)
	}
	m.client.Closed()
	m.server.Close()
	m.server.Double.Keyspace.Close()
}

// now is the instant by the clock that all servers share.
func (m *member) now() limit.Instant {
	is, _ := m.clock.Now(m.w.now)
	return is
}

// sample reads the clocks of the nodes that it reaches.
func (m *member) sample() {
	if m.w.engine.master == nil || m.cut() {
		return
	}
	for i, n := range append(m.w.engine.replicas[:len(m.w.engine.replicas):len(m.w.engine.replicas)], m.w.engine.master) {
		there, back := m.trip(), m.trip()
		m.clock.Add(m.w.now, clock.Sample{
			Node: fmt.Sprint(i), Sent: m.w.now - there - back, Received: m.w.now, Shown: m.w.instant().Add(n.skew - back),
		})
	}
}

// cut reports whether it is cut off.
func (m *member) cut() bool { return m.w.now < m.parted }

// trip is the time of a message.
func (m *member) trip() time.Duration {
	if m.w.now < m.w.slow {
		return m.w.upTo(30 * time.Millisecond)
	}
	return 100*time.Microsecond + m.w.upTo(2*time.Millisecond)
}

// fate is what becomes of its next request.
func (m *member) fate() fate {
	if m.w.now < m.w.lossy && m.w.rng.IntN(100) < m.w.losses {
		return refused + fate(m.w.rng.IntN(int(fates-refused)))
	}
	return answered
}

// fault notes that it has not reached the store from one instant to the other.
func (m *member) fault(from, to time.Duration) {
	if from > m.back+inForce {
		m.away = from
	}
	m.away, m.back = min(m.away, from), max(m.back, to)
}

// reaches reports whether it has reached the store for long enough.
func (m *member) reaches() bool { return m.w.now > m.back+inForce && !m.cut() }

// moved is called when its records have another version.
func (m *member) moved() {
	v, e := m.w.engine.versions[m.store.Version().String()], m.w.engine
	for _, lost := range m.mourned {
		m.mostLost++
		// The log tells of all that is lost, as long as it has the number.
		if lost.Number > e.head.Number || lost.Number+uint64(m.w.log) > e.head.Number+5 {
			m.leastLost++
		}
	}
	m.mourned = nil
	if !m.settles {
		m.settles = true
		m.run(m.settle)
	}
	switch {
	case v == nil:
		m.w.fail("%s has the version %q, which the engine never had", m.name, m.store.Version())
	case v.Number == 0:
	case !e.has(v): // the engine has lost it while it was read
		m.mourned = append(m.mourned, v)
	default:
		m.known = append(m.known, v)
	}
}

// settle does what a server does after it has followed the store: the records that have come are in force even if no call
// asks for the table.
func (m *member) settle(p *process) {
	m.changing.take(p)
	defer m.changing.give()
	m.settles = false
	m.registry.Settle()
}

// mourn notes which of its versions the engine has lost.
func (m *member) mourn() {
	kept := m.known[:0]
	for _, v := range m.known {
		if m.w.engine.has(v) {
			kept = append(kept, v)
		} else {
			m.mourned = append(m.mourned, v)
		}
	}
	m.known = kept
}

// follow does what a server does in the background: it asks the store what has changed.
func (m *member) follow(p *process) {
	for tries := 0; ; tries++ {
		m.storing.take(p)
		_, err := m.store.Follow(m.w.t.Context())
		m.storing.give()
		period := followPeriod
		if err != nil && m.store.Unread() != nil && tries < int(followPeriod/followFirst) {
			period = followFirst
		}
		m.calm = m.w.now + followGap
		m.nap++
		nap := m.nap
		m.waits = true
		resume := func() {
			if m.waits && m.nap == nap {
				m.waits = false
				p.resume()
			}
		}
		if m.woken {
			m.w.after(followGap, resume)
		}
		m.woken = false
		m.w.after(period, resume)
		m.wakes = resume
		p.wait()
	}
}

// wake tells it that there may be changes.
func (m *member) wake() {
	switch {
	case m.dead || m.cut() || m.w.now < m.deaf:
	case m.waits:
		m.w.after(m.calm-m.w.now, m.wakes)
	default:
		m.woken = true
	}
}

// lay gives it another policy file.
func (m *member) lay(p *process) {
	if !m.w.files {
		return
	}
	m.changing.take(p)
	defer m.changing.give()
	text, is := fileOf(m.w.number(), m.w.rng.IntN(2) == 0)
	d, faults := document.Parse("policies.yaml", []byte(text), policy.Bounds{})
	require.Empty(m.w.t, faults)
	_, err := m.registry.Overlay(d, m.now(), policy.Bounds{})
	require.NoError(m.w.t, err)
	m.file = is
}

// writer is the store of a change, which takes the turn of the store's mutex.
type writer struct {
	*records.Changing
	m    *member
	p    *process
	made *change
	ops  []op
}

func (s *writer) Refresh() (limit.Instant, error) {
	s.m.storing.take(s.p)
	defer s.m.storing.give()
	return s.Changing.Refresh()
}

func (s *writer) SetStrings(pairs [][]byte, need registry.Need) error {
	return s.write(writing{s.made, s.ops}, func() error { return s.Changing.SetStrings(pairs, need) })
}

// Delete removes ended entries.
func (s *writer) Delete(keys ...[]byte) error {
	return s.write(writing{}, func() error { return s.Changing.Delete(keys...) })
}

func (s *writer) write(is writing, f func() error) error {
	s.m.storing.take(s.p)
	defer s.m.storing.give()
	s.p.writes = is
	return f()
}

// tidy removes the entries that have ended, as the server does once a minute.
func (m *member) tidy(p *process) {
	m.changing.take(p)
	defer m.changing.give()
	m.registry.Tidy(&writer{Changing: m.store.Changing(), m: m, p: p}, true)
}

// change is a change that a client of a server wants.
type change struct {
	id     string
	of     *member
	urgent bool // it waits for a replica
	plan   func(b *policy.Builder, now limit.Instant) ([]op, error)

	outcome   outcome
	confirmed bool // a replica has confirmed it
	versions  []*version
}

// outcome is what the client knows of its change.
type outcome uint8

const (
	unanswered outcome = iota
	made               // it was made, and a replica has it if it waits for one
	alone              // it was made, and no replica has confirmed it
	taken              // it was made, and a failover has taken it
	nothing            // there was nothing to do
	notMade
	doubtful
)

// errNoPolicy is the error of an entry of a policy that does not exist.
var errNoPolicy = errors.New("no such policy")

// try makes the change, as commands do.
func (m *member) try(p *process, c *change) {
	s := &writer{Changing: m.store.Changing(), m: m, p: p, made: c}
	m.changing.take(p)
	c.outcome = doubtful
	err := m.registry.Update(s, registry.Author{User: c.id, What: "TEST", Urgent: c.urgent}, func(b *policy.Builder, now limit.Instant) (edits []registry.Edit, err error) {
		if s.ops, err = c.plan(b, now); err != nil {
			return nil, err
		}
		return editsOf(m.w.t, b, s.ops, now), nil
	})
	m.changing.give()
	c.outcome = outcomeOf(err, len(s.ops))
	if err == nil && c.urgent && len(s.ops) > 0 {
		m.confirming.take(p)
		p.writes = writing{made: c}
		c.outcome = outcomeOf(s.Confirm(), len(s.ops))
		m.confirming.give()
	}
}

func outcomeOf(err error, ops int) outcome {
	var unavailable decide.Unavailable
	switch {
	case err == nil && ops == 0:
		return nothing
	case err == nil:
		return made
	case errors.Is(err, registry.ErrUnconfirmed):
		return alone
	case errors.As(err, &unavailable) && strings.Contains(err.Error(), "may be in force or not"):
		return doubtful
	case errors.As(err, &unavailable) && strings.Contains(err.Error(), "a failover of the store has taken"):
		return taken
	}
	return notMade
}

// decides has the server decide a call, and checks that the answer is that of a version which was in force within the bound.
func (m *member) decides(rng *rand.Rand) {
	w := m.w
	if !m.clock.Ready() {
		return // it knows no time yet, by which a call could be decided
	}
	if at := m.now(); at > m.server.Clock.Now() {
		m.server.Clock.Set(at)
	}
	name, key := names[rng.IntN(len(names))], fmt.Sprintf("k%d", rng.IntN(keys))
	out, _ := m.client.Feed(inproc.Encode(nil, "RL.USE", name, key, "1000000000"))
	got := string(out)
	w.calls++
	if unread := m.store.Unread(); unread != nil {
		want := view{m.file, nil}.answer(name, key, w.instant())
		if strings.HasPrefix(want, "-NOPOLICY") { // the records may have it
			want = "-UNAVAILABLE " + unread.Error() + "\r\n"
		}
		if got != want || m.reaches() {
			w.fail("%s answers %q before it has read the records, and reaches the store: %v", m.name, got, m.reaches())
		}
		return
	}
	from := w.now - inForce
	if !m.reaches() {
		from = min(from, m.away-inForce)
		w.apart++
	}
	var first string
	agrees := w.engine.since(from, func(v *version) bool {
		return view{m.file, v.entries}.answers(name, key, w.instant(), slack, func(answer string) bool {
			if first == "" {
				first = answer
			}
			return answer == got
		})
	})
	if !agrees {
		w.fail("%s answers %q to a call under %s for %s, but since %v all answers are others, the latest %q", m.name, got, name, key, from, first)
	}
	m.checkAge()
}

// checkAge checks that the server has what the engine had at the instant of its age, and that this is within the bound.
func (m *member) checkAge() {
	w, age := m.w, m.store.Age(m.now())
	until, had := w.engine.latest(m.store.Version().String())
	if !had || until < w.now-age-slack {
		w.fail("%s says that its policies are %v old, but the engine has had none of their version since %v", m.name, age, until)
	}
	if m.reaches() && age > inForce+slack {
		w.fail("%s reaches the store, and its policies are %v old", m.name, age)
	}
}
