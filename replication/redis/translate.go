package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/keyspace"
)

// ErrResync is wrapped by the error of [Follower.Follow] if a command of the stream cannot be
// applied, so that the next link has to begin with a full copy.
var ErrResync = errors.New("everything has to be copied anew")

// Runner executes commands of the primary.
type Runner interface {
	// Run executes the command args in the database db. It has the rights of a primary: it may
	// write although this node is read-only, and above maxmemory. The error is the error reply,
	// or the first error in the reply of EXEC. MULTI, EXEC and DISCARD are also passed to Run.
	// The commands between them are queued, each for its own database. args are valid only during
	// the call.
	Run(db int, args [][]byte) error
}

// translator applies the commands of a stream. See dirty.go for the commands that it executes.
type translator struct {
	runner    Runner
	keyTable  *keyTable
	skipped   *Tally
	view      view
	databases int
	// db is the database that the primary has selected.
	db int
	tx *transaction
	// names is scratch space for the keys of a command.
	names []name
	// asked says that the primary has requested an acknowledgement.
	asked bool
}

// transaction is the part of the stream between MULTI and EXEC. The keys of commands that are not
// executed become dirty at EXEC. If they became dirty earlier, a reading could be stored that the
// queued commands would then overwrite.
type transaction struct {
	start  int64
	queued bool // whether commands were passed to the Runner
	// ran has the keys of the commands that were passed to the Runner. marked has the keys of the
	// other commands.
	ran    []name
	marked map[name]struct{}
	// flushed has the databases that the transaction empties.
	flushed []int
}

// allDatabases stands for all databases, where the number of one is expected.
const allDatabases = -1

// apply applies the command args, which is at (start, end] of the stream. It counts an unknown
// command, and a command in a database that this server does not have, as skipped. An error ends
// the link.
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

// selectDB applies SELECT: it sets t.db, even to a database that this server does not have.
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

// change applies a command on keys: it executes the command, skips it, or makes its keys dirty. A
// command without keys counts as skipped.
func (t *translator) change(w word, args [][]byte, start, end int64) error {
	args, relative := absolute(args)
	t.names = w.appendNames(t.names[:0], t.db, args)
	if len(t.names) == 0 {
		t.skipped.Add(string(args[0]), 1) // the command is a script without keys
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

// has reports whether an earlier command of the transaction makes one of names dirty. tx may be
// nil.
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

// mark makes names dirty, at once or at the end of the transaction.
func (t *translator) mark(names []name, start, end int64) {
	if t.tx == nil {
		t.keyTable.touch(names, start, end, false)
		return
	}
	for _, n := range names {
		t.tx.marked[n] = struct{}{}
	}
}

// run passes a command on the keys t.names to the Runner. If the Runner returns an error, the keys
// become dirty, so that no change is lost. The result is always nil.
func (t *translator) run(args [][]byte, start, end int64) error {
	if err := t.hand(t.db, args); err != nil {
		t.mark(t.names, start, end)
	}
	if t.tx != nil {
		t.tx.ran = append(t.tx.ran, t.names...)
	}
	return nil
}

// hand passes the command args in the database db to the Runner. Before the first command of a
// transaction it passes MULTI.
func (t *translator) hand(db int, args [][]byte) error {
	if t.tx != nil && !t.tx.queued {
		if err := t.runner.Run(db, [][]byte{[]byte("MULTI")}); err != nil {
			return err
		}
		t.tx.queued = true
	}
	return t.runner.Run(db, args)
}

// flush applies FLUSHDB and FLUSHALL. These commands also delete values that were read ahead of the
// stream, so all tracked keys of the database are read again. The lock storing prevents a reading
// from being stored meanwhile. In a transaction, flush leaves all that to commit. It ignores a
// FLUSHDB of a database that this server does not have.
func (t *translator) flush(args [][]byte, start, end int64) error {
	db := t.db
	if is(args[0], "flushall") {
		db = allDatabases
	} else if db >= t.databases {
		return nil
	}
	runs := min(t.db, t.databases-1) // FLUSHALL may run in a database that this server does not have, so the number is limited
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

// flushed makes the tracked keys of the database db dirty. If db is allDatabases, it makes all
// tracked keys dirty.
func (t *translator) flushed(db int, start, end int64) {
	t.keyTable.touchAll(func(n name, _ *tracked) bool { return db == allDatabases || db == n.db }, start, end)
}

// commit applies EXEC, which ends at the offset end: it passes EXEC to the Runner, and then makes
// the keys of commands that were not executed dirty.
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

// leave discards a transaction that has not ended, when a link ends. The next link receives the
// transaction again.
func (t *translator) leave() {
	if t.tx != nil && t.tx.queued {
		_ = t.runner.Run(0, [][]byte{[]byte("DISCARD")}) // the Runner returns an error if there is no transaction, which does not matter
	}
	t.tx = nil
}

// soon is the remaining time to live below which a key counts as missing, because it could expire
// before the command runs.
const soon = time.Second

// lacks reports whether a key of t.names that the primary has may be missing on this server. The
// command would then begin with an empty value. A key is missing if it has expired here a little
// earlier, or if the full copy has omitted it, because it was about to expire or its type is
// unknown here. If the command were executed, the key would have only the change of this command,
// and would keep this value if a later command extended the expiry.
func (t *translator) lacks(w word, args [][]byte) (lacks bool) {
	names := t.names
	switch {
	case w.action == put && !(is(args[0], "set") && len(args) > 3 && is(args[3], "keepttl")):
		return false
	case is(args[0], "rename"):
		names = names[:1] // only the first key matters, because the other one is replaced
	}
	t.view.within(func(v *keyspace.Handle) {
		for _, n := range names {
			at, has, exists := v.Expiry(n.db, []byte(n.key))
			lacks = lacks || !exists || has && at < v.Keyspace().Clock().Now().Add(soon)
		}
	})
	return lacks
}

// absolute returns in done the command args without the conditions that the primary has found to be
// true. It may change args. relative says that the effect depends on the time at which the command
// runs.
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
		args = args[:min(len(args), 3)] // the arguments without the options NX, XX, GT and LT
	}
	args[0] = name
	return args, false
}

// absoluteSet returns for a SET what absolute returns. If it does not know an option, done is the
// whole command and relative is true, so that the key is read.
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
