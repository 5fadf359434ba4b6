package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/rdb"
)

// Options has the dependencies of a [Follower]. All fields must be set, except Empty and Round.
type Options struct {
	Keyspace *keyspace.Keyspace
	Runner   Runner
	// Dial opens a second connection to the primary that is followed, and authenticates it. The
	// user needs DUMP, PEXPIRETIME, PTTL, ROLE, TIME, SELECT, MULTI and EXEC. Reads and writes of
	// the connection must have a timeout, like the reads and writes of the link.
	Dial func(ctx context.Context) (net.Conn, error)
	// Begin is called before the first key of a full copy, or at the end of a copy without a key.
	// When Begin returns, the keyspace must be empty and hidden from clients. Whole is called when
	// all keys are loaded, and must end the hiding. The goroutine of Follow calls both. Keys that
	// are loaded between the two calls are not logged.
	Begin, Whole func() error
	// Empty is called before Begin for a copy without a key. related says that the copy has the
	// history that was followed. If Empty returns an error, the keyspace is not changed, and the
	// link ends. Empty may be nil.
	Empty func(related bool) error
	// Round is called when all commands that have arrived were executed, before the next read
	// that may block. It may be nil.
	Round func()
	Log   *slog.Logger
}

// Figures has the counters of a [Follower] since it was created. A full copy resets Skipped.
type Figures struct {
	// Skipped has the numbers of keys and commands that were skipped, by their type or name.
	Skipped map[string]int64
	// Commands is the number of commands that have arrived, Loaded the number of keys in RDBs,
	// and Read the number of dirty keys that were read. Dirty is the number of keys that are
	// dirty now.
	Commands, Loaded, Read, Dirty int64
}

// Follower is a replica of a live Redis or Valkey. Its state persists over several links: keys
// that were read ahead of the stream remain valid for the offset at which the next link begins.
type Follower struct {
	o        Options
	keyTable *keyTable
	skipped  Tally
	storing  sync.Mutex // the lock that [view] describes under this name
	// kick makes the pulse read dirty keys and acknowledge at once. It has capacity one.
	kick                   chan struct{}
	commands, loaded, read atomic.Int64

	mu sync.Mutex
	// replid is guarded by mu. It is "" if no complete state was copied. inside, also guarded by
	// mu, says that a transaction has begun in the stream and has not ended.
	replid string
	inside bool

	// db is the database that the primary has selected at the position of keyTable. Only the
	// goroutine of Follow uses it.
	db int
}

// New returns a Follower that has no state yet.
func New(o Options) *Follower {
	return &Follower{o: o, keyTable: newKeyTable(), kick: make(chan struct{}, 1)}
}

// Current returns the replication ID replid of the history that is followed, and the offset up to
// which its stream was applied. The next PSYNC has to ask for replid and offset+1. replid is "" if no
// history is followed. settled says that everything before offset is stored and offset is not inside a
// transaction, so that the node may be promoted. Any goroutine may call Current.
func (f *Follower) Current() (replid string, offset int64, settled bool) {
	position, stored := f.keyTable.at()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replid, position, f.replid != "" && position == stored && !f.inside
}

// Forget makes the next link begin with a full copy. It must not be called during Follow.
func (f *Follower) Forget() { f.name("") }

// Figures returns the present values of the counters. Any goroutine may call it.
func (f *Follower) Figures() Figures {
	return Figures{
		Skipped: f.skipped.Counts(), Commands: f.commands.Load(), Loaded: f.loaded.Load(),
		Read: f.read.Load(), Dirty: int64(f.keyTable.waiting()),
	}
}

// name makes replid the history that is followed.
func (f *Follower) name(replid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replid = replid
}

// Follow follows a primary over conn until conn fails or ctx ends, and closes conn. in reads from
// conn. reply is the answer to PSYNC, FULLRESYNC or CONTINUE, without its line end. The error says
// why Follow has ended, and is never nil. After [ErrResync], the replid of Current is "".
func (f *Follower) Follow(ctx context.Context, conn net.Conn, in *bufio.Reader, reply string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	err := f.begin(in, reply)
	if err == nil {
		err = f.stream(ctx, cancel, conn, in)
	}
	if errors.Is(err, ErrResync) {
		f.o.Log.Warn("full resynchronization needed", "reason", err)
		f.Forget()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // the error of the closed connection says nothing more
	}
	return err
}

// begin acts on reply, the answer to PSYNC: it loads the full copy, or checks that the stream
// continues from the present state.
func (f *Follower) begin(in *bufio.Reader, reply string) error {
	words := strings.Fields(reply)
	switch {
	case len(words) == 3 && words[0] == "+FULLRESYNC":
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || offset < 0 || len(words[1]) != 40 {
			break
		}
		return f.copy(in, words[1], offset)
	case len(words) > 0 && len(words) <= 2 && words[0] == "+CONTINUE":
		replid, _, _ := f.Current()
		if replid == "" {
			return fmt.Errorf("%w: the primary goes on where nothing was", errStream)
		}
		if len(words) == 2 && len(words[1]) == 40 && words[1] != replid {
			f.keyTable.doubt()
			f.name(words[1])
		}
		return nil
	}
	return fmt.Errorf("%w: the primary answers PSYNC with %q", errStream, printable(reply))
}

// copy loads a complete state from in and makes it the state of f: the state of the history replid
// at offset. It calls Empty, Begin and Whole of the Options. After an error the replid of Current
// is "".
func (f *Follower) copy(in *bufio.Reader, replid string, offset int64) error {
	before, _, _ := f.Current()
	f.Forget()
	f.skipped.Reset()
	l := &load{f: f}
	size, err := readRDB(in, l.visitor())
	if err != nil {
		return err
	}
	if !l.begun && f.o.Empty != nil {
		if err := f.o.Empty(replid == before); err != nil {
			return err
		}
	}
	if err := l.begin(); err != nil {
		return err
	}
	if err := f.o.Whole(); err != nil {
		return err
	}
	f.keyTable.reset(offset)
	f.db = l.selected
	f.name(replid)
	f.o.Log.Info("copied a primary", "bytes", size, "keys", f.loaded.Load(), "skipped", f.skipped.Counts())
	return nil
}

// load is a full copy that is in progress.
type load struct {
	f *Follower
	// begun says that the keyspace was emptied for the copy.
	begun bool
	// selected is the database in which the stream after the copy begins.
	selected int
}

// begin calls Options.Begin before the first key. Later calls do nothing.
func (l *load) begin() error {
	if l.begun {
		return nil
	}
	l.begun = true
	return l.f.o.Begin()
}

// visitor returns the visitor that stores the keys of the RDB. It calls begin with the first key
// and not before, so that a primary that sends no key, or no RDB, does no harm.
func (l *load) visitor() *rdb.Visitor {
	ks := l.f.o.Keyspace
	v := l.f.values(func(db int, key []byte, e entry.Entry) error {
		l.f.loaded.Add(1)
		return ks.Restore(db, key, e)
	}).visitor()
	value, skipped := v.Value, v.Skipped
	v.Value = func(key *rdb.Key, part rdb.Part) error {
		if err := l.begin(); err != nil {
			return err
		}
		return value(key, part)
	}
	v.Skipped = func(s rdb.Skipped) error {
		if s.Key != nil {
			if err := l.begin(); err != nil {
				return err
			}
		}
		return skipped(s)
	}
	v.Aux = func(name, value []byte) (err error) {
		if string(name) == "repl-stream-db" {
			l.selected, err = streamDB(value, ks.Databases())
		}
		return err
	}
	return v
}

// streamDB returns the number of the database in which the stream after an RDB begins. value is
// that number as a text. It is needed because a primary that itself follows another primary passes
// on the stream of that primary, without another SELECT.
func streamDB(value []byte, databases int) (db int, err error) {
	if db, err = number(value, databases-1); err != nil {
		return 0, fmt.Errorf("%w: repl-stream-db: %w", errStream, err)
	}
	return db, nil
}

// values returns a converter that passes entries to store.
func (f *Follower) values(store func(db int, key []byte, e entry.Entry) error) *values {
	ks := f.o.Keyspace
	return &values{clock: ks.Clock(), databases: ks.Databases(), skipped: &f.skipped, store: store}
}

// stream applies the stream of commands, while another goroutine reads dirty keys and
// acknowledges. It returns the reason why the link has ended.
func (f *Follower) stream(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, in *bufio.Reader) error {
	f.keyTable.open()
	var beside sync.WaitGroup
	beside.Go(func() {
		p := &pulse{
			link: conn, keyTable: f.keyTable, ks: f.o.Keyspace, dial: f.o.Dial, kick: f.kick, count: &f.read, storing: &f.storing,
		}
		p.values = f.values(p.take)
		defer p.close()
		if err := p.run(ctx); err != nil {
			cancel(err)
		}
		f.keyTable.close()
	})
	err := f.apply(ctx, in)
	cancel(err)
	beside.Wait()
	return err
}

// apply applies commands from in until the link ends, and returns the reason.
func (f *Follower) apply(ctx context.Context, in *bufio.Reader) error {
	ks := f.o.Keyspace
	handle := ks.NewHandle()
	defer handle.Close()
	t := &translator{
		runner: f.o.Runner, keyTable: f.keyTable, skipped: &f.skipped, databases: ks.Databases(), db: f.db,
		view: view{ctx: ctx, handle: handle, storing: &f.storing},
	}
	defer f.inTransaction(false)
	defer t.leave()
	base, _ := f.keyTable.at()
	if round := f.o.Round; round != nil {
		defer round()
		in = bufio.NewReaderSize(&rounds{in, round}, maxRound)
	}
	c := &commands{in: in}
	for {
		start := base + c.consumed
		args, err := c.next()
		if err != nil {
			return err
		}
		if len(args) > 0 {
			f.commands.Add(1)
			if err := t.apply(args, start, base+c.consumed); err != nil {
				return err
			}
		}
		if begun := t.tx != nil; begun {
			f.inTransaction(true)
			continue // the next link must begin before the transaction, so the offset does not advance
		}
		f.db = t.db // set before advance, because the next link continues from here even if advance returns false
		if !f.keyTable.advance(base + c.consumed) {
			return context.Canceled
		}
		f.inTransaction(false)
		if t.asked {
			t.asked = false
			f.wake()
		}
	}
}

func (f *Follower) inTransaction(inside bool) {
	if f.inside == inside {
		return // no lock is needed, because only this goroutine writes f.inside
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside = inside
}

// wake makes the goroutine of the pulse read dirty keys and acknowledge at once. It does not block.
func (f *Follower) wake() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}
