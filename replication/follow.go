package replication

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// longAgo is the instant of a node while it loads another's state: nothing has expired by
// then, whatever the clocks of the two nodes show.
const longAgo = limit.Instant(1)

// farAhead is an instant that no clock gets to.
const farAhead = limit.MaxInstant / 2

// KeepExpired is for how long a replica keeps what has expired by a clock record of its primary, as
// long as it knows no watermark: the primary is of an older version, or the link or this server has
// just begun. An effect behind that record may be of an earlier instant, at which the key lived: that
// of the batch, transaction or script that it belongs to, which began before and has just ended. What
// it does to the key may be a patch, for which the key has to be there.
const KeepExpired = 10 * time.Second

// keptPending is the largest buffer of an incomplete frame that is kept for the next.
const keptPending = 4 << 20

// follower applies what a primary sends. One goroutine at a time uses it, that of the link
// or, between two links, that of the node; the atomic fields are for all.
type follower struct {
	o   *Options
	log Log // nil before the first Follow

	// whole says that the state is a whole one: the node's own, or that of a primary at the
	// offset of the source. It is false from the beginning of a full sync to its end.
	whole atomic.Bool
	// related says that the state is that of the source's history at its offset, so that it
	// may go on from there.
	related bool
	// streaming says that what comes is applied to a whole state, so that the offset of the
	// source is to be acknowledged.
	streaming atomic.Bool
	// resumes says that the state is that of the files, and the clock one that went on without
	// the primary's: it is set by the first clock frame.
	resumes bool
	// watermarks says that the link has told one: see [persistence.FrameWatermark].
	watermarks bool
	// received says that the state came from a primary, or is that of the files of a server that
	// started as a replica. Otherwise the node has led with it.
	received bool
	refused  string // the data set that was refused last, until another is taken over
	address  string // of the primary whose link this is
	from     string // address of the primary that the state came from, or empty

	pending []byte        // the beginning of a frame
	sync    *incomingSync // nil while there is none
	// The clock when a full sync began, by which it goes on if that is given up.
	left      limit.Instant
	leftSince time.Duration
	horizon   atomic.Int64 // instant of the last clock frame
	bytes     atomic.Int64 // that came in chunks
	durable   durability
	position  uint64 // of the log, behind what was appended last
	// reached is the offset behind the frame that is being applied, or less.
	reached atomic.Uint64

	rewrite fileRewrite
}

// incomingSync is a full sync that is under way.
type incomingSync struct {
	id      string
	dataSet string
	offset  uint64 // behind the last complete frame
	started bool   // the state of before is gone
	ended   bool   // all blocks have come
	keys    uint64
	blocks  uint64
	// clock is the instant of the last clock frame, which came at the reading since.
	clock    limit.Instant
	since    time.Duration
	hasClock bool
}

// errOtherDataSet is why a replica keeps its state: see Settings.RefuseOther.
var errOtherDataSet = errors.New("the primary has another data set, as after a start without its files: this replica keeps its keys and does not follow, until CONFIG SET repl-refuse-empty no")

// errRestored is why a server does that was restored from a backup.
var errRestored = errors.New("the primary has another data set than the backup that this server was restored from: this server keeps it and does not follow, until it is promoted, or CONFIG SET repl-refuse-empty no")

// errEmptyPrimary is why a replica does where one of the data sets is unknown.
var errEmptyPrimary = errors.New("the primary has come back without a key and with a new history: it is not followed (repl-refuse-empty)")

// refusesState reports whether a link has ended since the replica refused the state of its primary.
func refusesState(why error) bool {
	return errors.Is(why, errOtherDataSet) || errors.Is(why, errRestored) || errors.Is(why, errEmptyPrimary)
}

// errFullSyncBegins is why replicas lose their connection.
var errFullSyncBegins = errors.New("this node begins a full sync with its primary")

// next is the offset of the next byte that is to come.
func (f *follower) next() uint64 {
	if f.sync != nil {
		return f.sync.offset + uint64(len(f.pending))
	}
	return f.o.Source.Offset() + uint64(len(f.pending))
}

// owed reports whether the primary has begun something that has not come completely.
func (f *follower) owed() bool { return f.sync != nil || len(f.pending) > 0 }

// begin takes the answer to PSYNC of the primary at address.
func (f *follower) begin(a answer, address string) error {
	f.drop()
	f.address = address
	if a.full {
		if f.refusesOther(a.dataSet) {
			f.refused = a.dataSet
			if f.o.Files.Restored() {
				return errRestored
			}
			return errOtherDataSet
		}
		f.sync = &incomingSync{id: a.id, dataSet: a.dataSet, offset: a.offset}
		return nil
	}
	if !f.whole.Load() || !f.related {
		return errors.New("the primary continues a history that it was not asked for")
	}
	if a.id != f.o.Source.History().ID {
		f.o.Source.Promote(a.id)
		f.o.Clock.ForgetPrimary()
	}
	if a.dataSet != "" {
		f.takeDataSet(a.dataSet)
	}
	f.from, f.received = address, true
	f.streaming.Store(true)
	return nil
}

// drop forgets what has come of a frame or a full sync when a link has ended.
func (f *follower) drop() {
	f.streaming.Store(false)
	f.watermarks = false
	f.reached.Store(0)
	f.pending, f.sync = nil, nil
}

// chunk applies one. After an error nothing of its link may be used.
func (f *follower) chunk(c Chunk) error {
	f.bytes.Add(int64(ChunkHead + len(c.Payload)))
	if c.Type == ChunkAlive {
		return nil
	}
	if want := f.next(); c.Offset != want {
		return fmt.Errorf("the primary sent what belongs to offset %d, at offset %d", c.Offset, want)
	}
	switch {
	case c.Type == ChunkTail:
		if err := f.tail(c.Payload); err != nil {
			return err
		}
	case f.sync == nil || f.sync.ended:
		return fmt.Errorf("the primary sent a chunk of type %d when there is no full sync", c.Type)
	case c.Type == ChunkBlock:
		if err := f.block(c.Payload); err != nil {
			return err
		}
	default:
		if err := f.end(c); err != nil {
			return err
		}
	}
	if s := f.sync; s != nil && s.ended && s.hasClock {
		f.complete()
	}
	return nil
}

// tail applies a piece of the stream.
func (f *follower) tail(piece []byte) error {
	if len(f.pending) == 0 {
		n, err := f.frames(piece)
		f.pending = append(f.pending, piece[n:]...)
		return err
	}
	f.pending = append(f.pending, piece...)
	n, err := f.frames(f.pending)
	rest := copy(f.pending, f.pending[n:])
	if f.pending = f.pending[:rest]; rest == 0 && cap(f.pending) > keptPending {
		f.pending = nil
	}
	return err
}

// frames applies the whole frames at the beginning of b, passes them on, and returns how
// long they are.
func (f *follower) frames(b []byte) (done int, err error) {
	for {
		fr, n, bad := persistence.NextFrame(b[done:])
		if bad != nil {
			err = fmt.Errorf("the stream of the primary has %w", bad)
			break
		}
		if n == 0 {
			break
		}
		if f.sync == nil {
			f.reached.Store(f.o.Source.Offset() + uint64(done+n))
		}
		if err = f.frame(fr); err != nil {
			break
		}
		done += n
	}
	switch {
	case done == 0:
	case f.sync != nil:
		f.sync.offset += uint64(done)
	default:
		f.o.Source.Write(b[:done])
	}
	return done, err
}

// frame applies one.
func (f *follower) frame(fr persistence.Frame) error {
	switch {
	case fr.Type == persistence.FrameEffects:
		return f.effects(fr.Body)
	case fr.Type == persistence.FrameClock:
		return f.clock(fr.Body)
	case fr.Type == persistence.FrameWatermark:
		return f.watermark(fr.Body)
	case fr.Type == persistence.FrameDurable, fr.Type == persistence.FrameEnd, fr.Type >= persistence.LeastPassedOver:
		return nil // about the files of the primary, or for versions that know it
	}
	return fmt.Errorf("the stream of the primary has a frame of type %d, which this version does not know", fr.Type)
}

func (f *follower) effects(record []byte) error {
	if f.sync != nil && !f.sync.started {
		if err := persistence.CheckEffects(record, f.o.Keyspace.Databases()); err != nil {
			return fmt.Errorf("a record of the primary cannot be applied: %w", err)
		}
		f.start()
	}
	now := f.o.Clock.Now()
	if err := f.o.Keyspace.ApplyRecord(record, now); err != nil {
		if persistence.CheckEffects(record, f.o.Keyspace.Databases()) == nil {
			f.related = false // the record is right, so the state is not: all of it is to come
		}
		return fmt.Errorf("a record of the primary cannot be applied: %w", err)
	}
	if f.sync == nil {
		f.position = f.log.Append(record, nil, now.Add(reach))
		f.durable.appended(f.position)
	}
	return nil
}

func (f *follower) clock(body []byte) error {
	r, err := persistence.ParseClock(body)
	if err != nil {
		return fmt.Errorf("the stream of the primary has %w", err)
	}
	if r.Derived < longAgo || r.Derived > farAhead {
		return errors.New("the clock of the primary shows what no clock does")
	}
	if s := f.sync; s != nil {
		s.clock, s.since, s.hasClock = r.Derived, f.o.Stopwatch(), true
		return nil
	}
	if f.resumes {
		f.resumes = false
		f.o.Keyspace.Exclusively(func() { f.setClock(r.Derived) })
	}
	f.o.Clock.Follow(r.Derived)
	if !f.watermarks {
		f.o.Keyspace.SweepTo(r.Derived.Add(-KeepExpired))
	}
	f.horizon.Store(int64(r.Derived))
	return nil
}

// watermark has what has expired by then removed: no effect to come is of an earlier instant, at
// which a key lived.
func (f *follower) watermark(body []byte) error {
	at, err := persistence.ParseWatermark(body)
	if err != nil {
		return fmt.Errorf("the stream of the primary has %w", err)
	}
	if at < longAgo || at > farAhead {
		return errors.New("the watermark of the primary is no instant")
	}
	if f.sync == nil {
		f.watermarks = true
		f.o.Keyspace.SweepTo(at)
	}
	return nil
}

// round writes what was applied to the log, once for many records.
func (f *follower) round() {
	if f.position != 0 {
		f.log.Await(f.position, nil) // whoever keeps the files knows whether that fails
	}
}

// start gives up the state of before, since what comes replaces it. The first piece of that has
// been checked: a primary that sends rubbish from the beginning costs nothing.
func (f *follower) start() {
	if f.sync.started {
		return
	}
	f.sync.started = true
	f.o.Keyspace.SweepTo(longAgo)
	f.clear(f.whole.Swap(false), func() limit.Instant { return longAgo })
}

// clear empties the keyspace and sets its clock. Of several full syncs in a row, first is
// the one before which there was a state.
func (f *follower) clear(first bool, clock func() limit.Instant) {
	f.related, f.resumes = false, false
	f.o.Host.SetLoading(true)
	f.o.Source.DropReplicas(errFullSyncBegins)
	f.rewrite.interrupt(errFullSyncBegins)
	f.o.Files.Suspend()
	f.o.Keyspace.Exclusively(func() {
		if first {
			f.left, f.leftSince = f.o.Clock.Now(), f.o.Stopwatch()
		}
		f.o.Keyspace.Empty()
		f.setClock(clock())
	})
}

// resumed is what the clock of before the first full sync shows now.
func (f *follower) resumed() limit.Instant { return f.left.Add(f.o.Stopwatch() - f.leftSince) }

// block stores the entries of a block.
func (f *follower) block(payload []byte) error {
	if !f.sync.started {
		if err := persistence.CheckBlock(payload, f.o.Keyspace.Databases()); err != nil {
			return fmt.Errorf("a block of the primary cannot be stored: %w", err)
		}
		f.start()
	}
	keys, err := persistence.DecodeBlock(payload, func(db int, key []byte, e entry.Entry) error {
		return f.o.Keyspace.Restore(db, key, e)
	})
	if err != nil {
		return fmt.Errorf("a block of the primary cannot be stored: %w", err)
	}
	f.sync.keys += uint64(keys)
	f.sync.blocks++
	return nil
}

// end checks that all of the state has come.
func (f *follower) end(c Chunk) error {
	s := f.sync
	keys, blocks := c.Whole()
	if keys != s.keys || blocks != s.blocks {
		return fmt.Errorf("the primary sent %d keys in %d blocks, and says %d in %d", s.keys, s.blocks, keys, blocks)
	}
	if !s.started && f.refusesEmpty() {
		return errEmptyPrimary
	}
	f.start()
	if err := f.o.Keyspace.Whole(); err != nil {
		return fmt.Errorf("the state of the primary is not whole: %w", err)
	}
	s.ended = true
	return nil
}

// refusesOther reports whether the state of that data set must not replace the present one. A
// node that has led takes over another, as a Redis does after REPLICAOF: so a primary that came
// back empty follows the replica that was promoted in its place. But it does not take over what
// it refused as a replica, which Sentinel may order after a promotion by hand. Nor does it give up
// the data set of a backup: Sentinel has promoted a replica with the state from before the restore.
func (f *follower) refusesOther(theirs string) bool {
	ours := f.o.Files.DataSet()
	if theirs == "" || ours == "" || theirs == ours {
		return false
	}
	if !f.received && theirs != f.refused && !f.o.Files.Restored() {
		return false
	}
	return f.o.Settings().RefuseOther && f.whole.Load() && f.keys() > 0
}

// takeDataSet takes over the id that the primary has said.
func (f *follower) takeDataSet(id string) {
	f.refused = ""
	if id != f.o.Files.DataSet() || f.o.Files.Restored() {
		f.o.Files.SetDataSet(id)
	}
}

// refusesEmpty reports whether a state without a key, which is what the primary has, must
// not replace the present one. If both data sets are known, [follower.refusesOther] has decided.
func (f *follower) refusesEmpty() bool {
	if f.sync.dataSet != "" && f.o.Files.DataSet() != "" {
		return false
	}
	h := f.o.Source.History()
	return f.keepsFrom(f.sync.id == h.ID || f.sync.id == h.ID2)
}

// keepsFrom is refusesEmpty for a state of which is known whether it is of the history that the
// present one is of.
func (f *follower) keepsFrom(known bool) bool {
	return f.o.Settings().RefuseOther && f.from == f.address && !known && f.whole.Load() && f.keys() > 0
}

// keys is how many keys there are, those of policies included: without them RL.USE limits nothing.
func (f *follower) keys() int {
	st := f.o.Keyspace.Stats()
	n := st.System
	for _, db := range st.Databases {
		n += db.Keys
	}
	return n
}

// complete puts the state of a full sync in force.
func (f *follower) complete() {
	s := f.sync
	f.o.Keyspace.Exclusively(func() { f.setClock(s.clock.Add(f.o.Stopwatch() - s.since)) })
	f.o.Clock.Follow(s.clock.Add(f.o.Stopwatch() - s.since))
	f.o.Keyspace.SweepTo(s.clock.Add(-KeepExpired))
	f.horizon.Store(int64(s.clock))
	f.o.Source.Begin(History{ID: s.id, Offset2: -1}, s.offset)
	f.sync, f.related, f.received, f.from = nil, true, true, f.address
	f.takeDataSet(s.dataSet)
	f.durable.forget()
	f.whole.Store(true)
	f.streaming.Store(true)
	f.rewrite.begin(f.o.Files, f.o.Log)
	f.o.Host.SetLoading(false)
}

// setClock sets the clock, also back. Nobody else uses the keyspace.
func (f *follower) setClock(now limit.Instant) {
	f.o.Clock.Set(now)
	f.o.Keyspace.ResetInstants(now)
}

// abandon gives up a full sync that has not ended, since nobody is followed any more. What
// has come is a part of a state, so nothing is kept. The world is stopped.
func (f *follower) abandon() {
	now := f.resumed()
	f.o.Keyspace.Empty()
	f.setClock(now)
	f.from, f.related = "", false
	f.takeDataSet(persistence.NewID())
	f.whole.Store(true)
}

// progress is what is acknowledged. It is nothing during a full sync: then the
// acknowledgement only shows that the replica is there.
func (f *follower) progress() progress {
	if !f.streaming.Load() {
		return progress{}
	}
	p := progress{applied: f.o.Source.Offset()}
	p.durable, p.hasDurable = f.durable.durable(f.log.Synced(), p.applied)
	return p
}
