package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/keyspace"
)

// ErrResync is returned when what follows in the stream cannot be applied, so that the next
// link has to begin with everything.
var ErrResync = errors.New("everything has to be copied anew")

// Runner executes commands of the primary.
type Runner interface {
	// Run executes a command in a database as a session of the primary does: it may change
	// keys though this node is read-only, and whatever memory is full. The error is the
	// reply if that is one, or the first in the reply of EXEC. MULTI, EXEC and DISCARD come
	// too, and what is between them is queued, each command for its own database. args are valid
	// during the call.
	Run(db int, args [][]byte) error
}

// translator applies the commands of a stream: see dirty.go for which are run.
type translator struct {
	runner    Runner
	keyTable  *keyTable
	skipped   *Tally
	view      view
	databases int
	// db is the database that the primary has selected.
	db int
	tx *transaction
	// names is used again for each command.
	names []name
	// asked says that the primary wants to know the offset at once.
	asked bool
}

// transaction is what comes between MULTI and EXEC. What it makes dirty is dirty from EXEC on:
// before, a reading could be stored that the queued commands would overwrite.
type transaction struct {
	start  int64
	queued bool // commands were handed to the Runner
	// ran has the keys of these commands, marked those of the others.
	ran    []name
	marked map[name]struct{}
	// flushed are the databases that it empties.
	flushed []int
}

// allDatabases is in transaction.flushed for FLUSHALL.
const allDatabases = -1

// apply applies the command at (start, end] of the stream.
func (t *translator) apply(args [][]byte, start, end int64) error {
	w, known := lookUp(args[0])
	switch {
	case !known:
		t.skipped.Add(string(args[0]), 1)
		return nil
	case w.action == selects:
		return t.selectDB(args)
	case w.action == begins:
		t.tx = &transaction{start: start, marked: map[name]struct{}{}}
	case w.action == commits:
		return t.commit(end)
	case w.action == replconf:
		t.asked = t.asked || len(args) > 1 && is(args[1], "getack")
	case w.action == swap:
		return fmt.Errorf("%w: SWAPDB", ErrResync)
	case w.action == flush:
		return t.flush(args, start, end)
	case w.action == ignore:
	case t.db >= t.databases:
		t.skipped.Add(fmt.Sprintf("in a database beyond %d", t.databases-1), 1)
	default:
		return t.change(w, args, start, end)
	}
	return nil
}

func (t *translator) selectDB(args [][]byte) error {
	if len(args) != 2 {
		return fmt.Errorf("%w: SELECT with %d words", errStream, len(args))
	}
	db, err := number(args[1], 1<<30)
	if err != nil {
		return fmt.Errorf("%w: SELECT: %w", errStream, err)
	}
	t.db = db
	return nil
}

// change applies a command on keys.
func (t *translator) change(w word, args [][]byte, start, end int64) error {
	args, relative := absolute(args)
	t.names = w.appendNames(t.names[:0], t.db, args)
	if len(t.names) == 0 {
		t.skipped.Add(string(args[0]), 1) // a script that names no key
		return nil
	}
	standing := t.keyTable.judge(t.names, end)
	if t.tx.has(t.names) {
		standing = dirtied
	}
	switch {
	case standing == included:
		return nil
	case standing == free && w.action != reread && !relative && !t.lacks(w, args):
		return t.run(args, start, end)
	}
	t.mark(t.names, start, end)
	return nil
}

// has reports whether a command before has made one of names dirty.
func (tx *transaction) has(names []name) bool {
	if tx == nil {
		return false
	}
	for _, n := range names {
		if _, marked := tx.marked[n]; marked {
			return true
		}
	}
	return false
}

// mark makes names dirty, now or with the end of the transaction.
func (t *translator) mark(names []name, start, end int64) {
	if t.tx == nil {
		t.keyTable.touch(names, start, end, false)
		return
	}
	for _, n := range names {
		t.tx.marked[n] = struct{}{}
	}
}

// run has the Runner execute a command on t.names. If it cannot, the keys are read instead, so that
// nothing is passed over.
func (t *translator) run(args [][]byte, start, end int64) error {
	if err := t.hand(t.db, args); err != nil {
		t.mark(t.names, start, end)
	}
	if t.tx != nil {
		t.tx.ran = append(t.tx.ran, t.names...)
	}
	return nil
}

// hand hands a command in a database to the Runner, the first of a transaction behind MULTI.
func (t *translator) hand(db int, args [][]byte) error {
	if t.tx != nil && !t.tx.queued {
		if err := t.runner.Run(db, [][]byte{[]byte("MULTI")}); err != nil {
			return err
		}
		t.tx.queued = true
	}
	return t.runner.Run(db, args)
}

// flush applies FLUSHDB and FLUSHALL. A value that was read ahead of it goes, too, so all
// that were are read again. Nothing is stored meanwhile.
func (t *translator) flush(args [][]byte, start, end int64) error {
	db := t.db
	if is(args[0], "flushall") {
		db = allDatabases
	} else if db >= t.databases {
		return nil
	}
	runs := min(t.db, t.databases-1) // FLUSHALL may come in a database that is not here
	if t.tx != nil {
		if err := t.hand(runs, args[:1]); err != nil {
			return fmt.Errorf("%w: %w", ErrResync, err)
		}
		t.tx.flushed = append(t.tx.flushed, db)
		return nil
	}
	t.view.storing.Lock()
	defer t.view.storing.Unlock()
	if err := t.runner.Run(runs, args[:1]); err != nil {
		return fmt.Errorf("%w: %w", ErrResync, err)
	}
	t.flushed(db, start, end)
	return nil
}

func (t *translator) flushed(db int, start, end int64) {
	t.keyTable.touchAll(func(n name, _ *tracked) bool { return db == allDatabases || db == n.db }, start, end)
}

// commit ends a transaction.
func (t *translator) commit(end int64) error {
	tx := t.tx
	if tx == nil {
		return fmt.Errorf("%w: EXEC without MULTI", errStream)
	}
	t.tx = nil
	if tx.queued {
		if len(tx.flushed) > 0 {
			t.view.storing.Lock()
			defer t.view.storing.Unlock()
		}
		exec := []byte("EXEC")
		if err := t.runner.Run(min(t.db, t.databases-1), [][]byte{exec}); err != nil {
			if len(tx.flushed) > 0 {
				return fmt.Errorf("%w: %w", ErrResync, err)
			}
			t.keyTable.touch(tx.ran, tx.start, end, false)
		}
	}
	for n := range tx.marked {
		t.names = append(t.names[:0], n)
		t.keyTable.touch(t.names, tx.start, end, false)
	}
	for _, db := range tx.flushed {
		t.flushed(db, tx.start, end)
	}
	return nil
}

// leave forgets a transaction that has not ended. It comes again with the next link.
func (t *translator) leave() {
	if t.tx != nil && t.tx.queued {
		_ = t.runner.Run(0, [][]byte{[]byte("DISCARD")}) // a session in no transaction may refuse
	}
	t.tx = nil
}

// soon is how long before its end a key is taken not to be here: it could end before the command
// has run.
const soon = time.Second

// lacks reports whether a key is not here that the primary has, so that the command would begin
// with nothing. The key has expired here a little earlier, or was left out of the copy since it
// would have expired or since what it held is not known here. With the first change from then on
// it would hold that alone, and live on if the next one prolongs it.
func (t *translator) lacks(w word, args [][]byte) (lacks bool) {
	names := t.names
	switch {
	case w.action == put && !(is(args[0], "set") && len(args) > 3 && is(args[3], "keepttl")):
		return false
	case is(args[0], "rename"):
		names = names[:1] // the other one is replaced
	}
	t.view.within(func(v *keyspace.Handle) {
		for _, n := range names {
			at, has, exists := v.Expiry(n.db, []byte(n.key))
			lacks = lacks || !exists || has && at < v.Keyspace().Clock().Now().Add(soon)
		}
	})
	return lacks
}

// absolute returns what the command did, without the conditions that the primary found to
// be true. relative says that it did something that depends on when it ran.
func absolute(args [][]byte) (done [][]byte, relative bool) {
	name := args[0]
	switch {
	case is(name, "setnx"):
		name = []byte("SET")
	case is(name, "msetnx"):
		name = []byte("MSET")
	case is(name, "renamenx"):
		name = []byte("RENAME")
	case is(name, "hsetnx"):
		name = []byte("HSET")
	case is(name, "lpushx"):
		name = []byte("LPUSH")
	case is(name, "rpushx"):
		name = []byte("RPUSH")
	case is(name, "set"):
		return absoluteSet(args)
	case is(name, "expireat"), is(name, "pexpireat"):
		args = args[:min(len(args), 3)] // without NX, XX, GT and LT
	}
	args[0] = name
	return args, false
}

// absoluteSet is absolute for SET. An option that is not known here makes it be read.
func absoluteSet(args [][]byte) (done [][]byte, relative bool) {
	if len(args) <= 3 {
		return args, false
	}
	done = args[:3]
	for i := 3; i < len(args); i++ {
		switch option := args[i]; {
		case is(option, "nx"), is(option, "xx"), is(option, "get"):
		case is(option, "keepttl"):
			done = append(done, option)
		case (is(option, "pxat") || is(option, "exat")) && i+1 < len(args) && isPlain(args[i+1]):
			done = append(done, option, args[i+1])
			i++
		default:
			return args, true
		}
	}
	return done, false
}

func isPlain(number []byte) bool {
	_, err := strconv.ParseInt(string(number), 10, 64)
	return err == nil
}
