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

// Options are the dependencies of a [Follower]. All fields must be set but Empty and Round.
type Options struct {
	Keyspace *keyspace.Keyspace
	Runner   Runner
	// Dial opens a second connection to the primary that is followed, and authenticates it. The
	// user needs DUMP, PEXPIRETIME, PTTL, ROLE, TIME, SELECT, MULTI and EXEC. Reads and writes of
	// the connection must have a timeout, like those of the link.
	Dial func(ctx context.Context) (net.Conn, error)
	// Begin is called with the first key of a full copy, or at its end if there is none. When it
	// returns, the keyspace must be empty, and hidden from clients until Whole is called. The
	// goroutine of Follow calls both. Keys that are loaded between them are not logged.
	Begin, Whole func() error
	// Empty is called before Begin for a copy without a key. related says that it is of the
	// history that was followed. If Empty returns an error, the keyspace is not changed. It may
	// be nil.
	Empty func(related bool) error
	// Round is called when all commands that have arrived were executed, before the next read.
	Round func()
	Log   *slog.Logger
}

// Figures are counters of a Follower since it was made.
type Figures struct {
	// Skipped counts keys and commands that were skipped, by their type or name.
	Skipped map[string]int64
	// Commands is how many commands arrived, Loaded how many keys RDBs had, and Read how many
	// dirty keys were read. Dirty is how many are dirty now.
	Commands, Loaded, Read, Dirty int64
}

// Follower is a replica of a live Redis or Valkey. It continues over several links: its keys that
// were read ahead of the stream stay valid for the offset at which the next link begins.
type Follower struct {
	o        Options
	keyTable *keyTable
	skipped  Tally
	storing  sync.Mutex // see view.storing
	// kick makes the pulse begin a round at once. Its capacity is one.
	kick                   chan struct{}
	commands, loaded, read atomic.Int64

	mu sync.Mutex
	// replid is guarded by mu. It is "" if no complete state was copied. inside says that a
	// transaction has begun; mu guards it, too.
	replid string
	inside bool

	// db is the database that the primary has selected at the position of keyTable.
	db int
}

// New returns a Follower.
func New(o Options) *Follower {
	return &Follower{o: o, keyTable: newKeyTable(), kick: make(chan struct{}, 1)}
}

// Current returns what the next PSYNC has to send: the history, or "" for none, and the offset up
// to which its stream was applied. settled says that everything before that offset is stored, so
// that the node may be promoted there. Current may be called from any goroutine.
func (f *Follower) Current() (replid string, offset int64, settled bool) {
	position, stored := f.keyTable.at()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replid, position, f.replid != "" && position == stored && !f.inside
}

// Forget makes the next link begin with a full copy. It must not be called during Follow.
func (f *Follower) Forget() { f.name("") }

// Figures returns the counters.
func (f *Follower) Figures() Figures {
	return Figures{
		Skipped: f.skipped.Counts(), Commands: f.commands.Load(), Loaded: f.loaded.Load(),
		Read: f.read.Load(), Dirty: int64(f.keyTable.waiting()),
	}
}

func (f *Follower) name(replid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replid = replid
}

// Follow follows a primary over conn until that fails or ctx ends, and closes conn. in reads from
// conn. reply is the answer to PSYNC, FULLRESYNC or CONTINUE, without its line end. The error is
// never nil. After [ErrResync], the replid of Current is "".
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
		return cause // the error of the closed connection has no information
	}
	return err
}

// begin acts on the reply to PSYNC.
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

// copy loads the complete state.
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

// load is a full copy that is under way.
type load struct {
	f *Follower
	// begun says that the keyspace was emptied for it.
	begun bool
	// selected is the database in which the stream after it begins.
	selected int
}

// begin empties the keyspace, once.
func (l *load) begin() error {
	if l.begun {
		return nil
	}
	l.begun = true
	return l.f.o.Begin()
}

// visitor calls begin with the first key, so that a primary that sends no key, or no RDB, does no
// harm.
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

// streamDB parses the database in which the stream after an RDB begins. A primary that itself
// follows another one passes on the stream of that one, without another SELECT.
func streamDB(value []byte, databases int) (db int, err error) {
	if db, err = number(value, databases-1); err != nil {
		return 0, fmt.Errorf("%w: repl-stream-db: %w", errStream, err)
	}
	return db, nil
}

func (f *Follower) values(store func(db int, key []byte, e entry.Entry) error) *values {
	ks := f.o.Keyspace
	return &values{clock: ks.Clock(), databases: ks.Databases(), skipped: &f.skipped, store: store}
}

// stream applies the stream while another goroutine reads dirty keys and acknowledges.
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

// apply applies commands until the link ends.
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
			continue // the next link must begin before the transaction
		}
		f.db = t.db // set before advance may return: the next link continues from here
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
		return // only this goroutine writes it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside = inside
}

// wake makes the pulse begin a round at once.
func (f *Follower) wake() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}
