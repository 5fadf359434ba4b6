package replication

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// longAgo is the time of a node's clock while it loads the state of another node. No key has
// expired at that time, whatever the clocks of the two nodes show.
const longAgo = limit.Instant(1)

// farAhead is an instant that no correct clock reaches.
const farAhead = limit.MaxInstant / 2

// KeepExpired is the time for which a replica keeps keys that have expired by a clock record of
// its primary, while it has not received a watermark. It receives none from a primary with an
// older version, and at first none after the link or this server has started. An effect after
// that clock record may have an earlier instant, at which the key had not expired: the effect of
// a batch, transaction or script which began earlier and has just ended. The effect may be a
// patch, which needs the key.
const KeepExpired = 10 * time.Second

// keptPending is the maximum capacity of a buffer for incomplete frames that is kept for the next
// frame: 4 MiB.
const keptPending = 4 << 20

// follower applies the stream of a primary. One goroutine at a time uses it: the goroutine of the
// link or, between two links, that of the node. Any goroutine may use the atomic fields.
type follower struct {
	o   *Options
	log Log // the log of the node; nil before needLog was called

	// whole says that the state is complete: it is the node's own state, or the state of a primary
	// at the offset of the source. It is false from the beginning of a full resynchronization to
	// its end.
	whole atomic.Bool
	// related says that the state belongs to the source's history at the source's offset, so that
	// a partial resynchronization may continue from it.
	related bool
	// streaming says that the stream is applied to a complete state, so that the node
	// acknowledges the offset of the source.
	streaming atomic.Bool
	// resumes says that the state comes from the files, and that the clock of this node has run
	// on since then without the clock of the primary. The first clock frame then sets the clock.
	resumes bool
	// watermarks says that a watermark has arrived on the present link: see
	// [persistence.FrameWatermark].
	watermarks bool
	// received says that the state came from a primary, or from the files of a server that
	// started as a replica. If it is false, the node has been a primary with this state.
	received bool
	refused  string // ID of the data set that was refused last; "" if another one was accepted since then
	address  string // address of the primary at the other end of this link
	from     string // address of the primary from which the state came; "" if there is none

	pending []byte        // the beginning of a frame whose rest has not arrived
	sync    *incomingSync // the full resynchronization in progress, or nil
	// left is the time of the clock when a full resynchronization began, at the stopwatch reading
	// leftSince. The clock continues from that time if the resynchronization is abandoned.
	left      limit.Instant
	leftSince time.Duration
	horizon   atomic.Int64 // instant of the last clock frame
	bytes     atomic.Int64 // number of bytes in the chunks that were received
	durable   durability
	position  uint64 // position of the log after the last record that was appended
	// reached is the offset after the frame that is being applied, or a smaller offset.
	reached atomic.Uint64

	rewrite fileRewrite
}

// incomingSync has the state of a full resynchronization that is in progress.
type incomingSync struct {
	id      string
	dataSet string
	offset  uint64 // offset of the stream after the last complete frame
	started bool   // whether the old state was discarded
	ended   bool   // whether all blocks have arrived
	keys    uint64
	blocks  uint64
	// clock is the instant in the last clock frame, which arrived at the stopwatch reading since.
	clock    limit.Instant
	since    time.Duration
	hasClock bool
}

// errOtherDataSet is the reason why a replica keeps its state and does not follow: see
// Settings.RefuseOther.
var errOtherDataSet = errors.New("the primary has another data set, as after a start without its files: this replica keeps its keys and does not follow, until CONFIG SET repl-refuse-empty no")

// errRestored is the reason why a server that was restored from a backup keeps its state and does
// not follow.
var errRestored = errors.New("the primary has another data set than the backup that this server was restored from: this server keeps it and does not follow, until it is promoted, or CONFIG SET repl-refuse-empty no")

// errEmptyPrimary is the reason why a replica does not follow a primary that is empty, if the ID
// of one of the data sets is unknown.
var errEmptyPrimary = errors.New("the primary has come back without a key and with a new history: it is not followed (repl-refuse-empty)")

// refusesState reports whether why, the reason why a link has ended, is that the replica refused
// the state of its primary.
func refusesState(why error) bool {
	return errors.Is(why, errOtherDataSet) || errors.Is(why, errRestored) || errors.Is(why, errEmptyPrimary)
}

// errFullSyncBegins is the reason why this node closes the connections of its replicas when it
// begins a full resynchronization.
var errFullSyncBegins = errors.New("this node begins a full sync with its primary")

// next returns the offset of the next byte of the stream that is to be received.
func (f *follower) next() uint64 {
	if f.sync != nil {
		return f.sync.offset + uint64(len(f.pending))
	}
	return f.o.Source.Offset() + uint64(len(f.pending))
}

// incomplete reports whether a full resynchronization or a frame has arrived only in part.
func (f *follower) incomplete() bool { return f.sync != nil || len(f.pending) > 0 }

// begin starts to follow the primary at address, whose answer to PSYNC is a. It returns an error
// if the node must not follow.
func (f *follower) begin(a answer, address string) error {
	f.drop()
	f.address = address
	if ours := calendar.Release(); a.tzdata != "" && a.tzdata != ours {
		f.o.Log.Warn("the primary has another release of tzdata: if this node is promoted, windows of a calendar may begin at other times",
			"addr", address, "ours", ours, "primary", a.tzdata)
	}
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

// drop discards an incomplete frame and an incomplete full resynchronization, after a link has
// ended.
func (f *follower) drop() {
	f.streaming.Store(false)
	f.watermarks = false
	f.reached.Store(0)
	f.pending, f.sync = nil, nil
}

// chunk applies the chunk c. After an error, the caller must not use anything more from the link.
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

// tail applies piece, the next part of the stream. It keeps an incomplete frame at the end of
// piece for the next call.
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

// frames applies the complete frames at the beginning of b and returns their length in bytes, done.
// It writes them to the source or, during a full resynchronization, advances the offset of f.sync.
// On error, done is the length of the frames before the bad one.
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

// frame applies the frame fr. It skips frames about the files of the primary, and frames of later
// versions that this version may pass over. Any other frame of an unknown type is an error.
func (f *follower) frame(fr persistence.Frame) error {
	switch {
	case fr.Type == persistence.FrameEffects:
		return f.effects(fr.Body)
	case fr.Type == persistence.FrameClock:
		return f.clock(fr.Body)
	case fr.Type == persistence.FrameWatermark:
		return f.watermark(fr.Body)
	case fr.Type == persistence.FrameDurable, fr.Type == persistence.FrameEnd, fr.Type >= persistence.LeastPassedOver:
		return nil // the frame is about the files of the primary, or only later versions know its type
	}
	return fmt.Errorf("the stream of the primary has a frame of type %d, which this version does not know", fr.Type)
}

// effects applies record, the body of a frame of effects. It appends record to the log of this
// node, except during a full resynchronization. The first record of a full resynchronization
// discards the old state.
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
			f.related = false // the record is valid, so this node's state is wrong, and the next link requests a full resynchronization
		}
		return fmt.Errorf("a record of the primary cannot be applied: %w", err)
	}
	if f.sync == nil {
		f.position = f.log.Append(record, nil, now.Add(reach))
		f.durable.appended(f.position)
	}
	return nil
}

// clock applies body, the body of a clock frame: the clock of this node follows the clock of the
// primary. During a full resynchronization, clock only stores the instant for complete.
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

// watermark removes the keys that have expired at the instant in body. It is safe to remove them,
// because no later effect has an earlier instant, at which such a key had not expired. During a
// full resynchronization, watermark does nothing but check body.
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

// round makes the log write the applied records. It is called once for many records.
func (f *follower) round() {
	if f.position != 0 {
		f.log.Await(f.position, nil) // the persistence manager handles errors of the log
	}
}

// start discards the old state, which the new state of a full resynchronization replaces, unless
// it has done so before. The caller has checked the first piece of the new state, so a primary
// that sends invalid data from the beginning does no harm.
func (f *follower) start() {
	if f.sync.started {
		return
	}
	f.sync.started = true
	f.o.Keyspace.SweepTo(longAgo)
	f.clear(f.whole.Swap(false), func() limit.Instant { return longAgo })
}

// clear empties the keyspace, sets the clock to the result of clock, and closes the connections of
// this node's replicas. The server then reports that it is loading, and does not write files. first
// says that the old state is complete: clear then keeps the present time in f.left. first is false
// if an earlier full resynchronization has failed before its end.
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

// resumed returns the time that the clock would show now if it had run on since the first full
// resynchronization began.
func (f *follower) resumed() limit.Instant { return f.left.Add(f.o.Stopwatch() - f.leftSince) }

// block stores the entries of payload, a block of the full resynchronization, in the keyspace. The
// first block discards the old state, after it was checked.
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

// end handles the chunk c, which ends the full resynchronization: it checks that all of the state
// has arrived, and discards the old state if no chunk has done that yet. If this node refuses the
// state of an empty primary, the error is errEmptyPrimary.
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

// refusesOther reports whether the present state must not be replaced by the state of the data set
// with the ID theirs. A node that has been a primary accepts another data set, as Redis does after
// REPLICAOF. So a primary that restarted empty follows the replica that was promoted in its place.
// But the node does not accept a data set that it refused as a replica, because Sentinel may order
// that after a manual promotion. It also does not replace a data set that was restored from a
// backup, because Sentinel may have promoted a replica with the state from before the restore.
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

// takeDataSet records that this node now has the data set id of its primary; "" if the ID is
// unknown.
func (f *follower) takeDataSet(id string) {
	f.refused = ""
	if id != f.o.Files.DataSet() || f.o.Files.Restored() {
		f.o.Files.SetDataSet(id)
	}
}

// refusesEmpty reports whether the present state must not be replaced by the empty state of the
// primary. If the IDs of both data sets are known, it returns false, because
// [follower.refusesOther] has already decided.
func (f *follower) refusesEmpty() bool {
	if f.sync.dataSet != "" && f.o.Files.DataSet() != "" {
		return false
	}
	h := f.o.Source.History()
	return f.keepsFrom(f.sync.id == h.ID || f.sync.id == h.ID2)
}

// keepsFrom reports whether the present state must not be replaced by an empty state from the
// same primary. known says that the new state has the history of the present one.
func (f *follower) keepsFrom(known bool) bool {
	return f.o.Settings().RefuseOther && f.from == f.address && !known && f.whole.Load() && f.keys() > 0
}

// keys returns the number of keys, including keys of policies, because RL.USE limits nothing
// without these.
func (f *follower) keys() int {
	st := f.o.Keyspace.Stats()
	n := st.System
	for _, db := range st.Databases {
		n += db.Keys
	}
	return n
}

// complete activates the state of a full resynchronization, which has arrived completely, and
// starts to write it to the files.
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

// setClock sets the clock to now, which may be earlier than the present time. The caller has
// exclusive use of the keyspace.
func (f *follower) setClock(now limit.Instant) {
	f.o.Clock.Set(now)
	f.o.Keyspace.ResetInstants(now)
}

// abandon discards an incomplete full resynchronization because the node no longer follows a
// primary. Only a part of the state has arrived, so abandon empties the keyspace, and the empty
// state is a new data set. The caller runs it inside Keyspace.Exclusively.
func (f *follower) abandon() {
	now := f.resumed()
	f.o.Keyspace.Empty()
	f.setClock(now)
	f.from, f.related = "", false
	f.takeDataSet(persistence.NewID())
	f.whole.Store(true)
}

// progress returns what this node acknowledges to its primary. While no complete state follows the
// stream, as during a full resynchronization, that is offset 0: then the acknowledgement only shows
// that the replica is alive.
func (f *follower) progress() progress {
	if !f.streaming.Load() {
		return progress{}
	}
	p := progress{applied: f.o.Source.Offset()}
	p.durable, p.hasDurable = f.durable.durable(f.log.Synced(), p.applied)
	return p
}
