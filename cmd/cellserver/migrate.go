package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// migration is the common part of import, export and copy: a Redis or a store on one side, the
// directory of a stopped cellserver on the other.
type migration struct {
	options *redis.Options
	dir     string
	match   string
	db      int // number of the database; -1 means all databases
	dryRun  bool
	w       io.Writer

	copied  int
	skipped map[string]int
	seen    int
	total   int64
	shown   time.Time
	// last is an instant at which the server of dir ran. No instant in dir is later than latest.
	last, latest limit.Instant
}

// flags returns the options of import and export, which are stored in m.
func (m *migration) flags(tool string) *flag.FlagSet {
	flags := flag.NewFlagSet(tool, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&m.match, "match", "*", "")
	flags.IntVar(&m.db, "db", -1, "")
	flags.BoolVar(&m.dryRun, "dry-run", false, "")
	return flags
}

func parseMigration(name string, args []string, w io.Writer) (*migration, error) {
	m := &migration{w: w, skipped: map[string]int{}}
	usage := fmt.Errorf("usage: cellserver %s redis://[user:password@]host:port DIR [--match pattern] [--db n] [--dry-run]", name)
	names, err := parseMixed(m.flags(name), args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%w", name, err, usage)
	}
	if len(names) != 2 {
		return nil, usage
	}
	if m.db < -1 || m.db >= databases {
		return nil, fmt.Errorf("%s: only databases 0 to %d exist", name, databases-1)
	}
	if m.options, err = clientOptions(names[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m.dir, err = filepath.Abs(names[1])
	return m, err
}

// open loads the directory into a keyspace. For a dry run on a directory that does not exist it
// creates none, and returns no Dir.
func (m *migration) open() (*persistence.Dir, *keyspace.Keyspace, error) {
	fsys := persistence.OS{}
	if m.dryRun && !persistence.Exists(fsys, m.dir) {
		clock := clock.NewSystem(clock.Options{})
		return nil, keyspace.New(keyspace.Options{Clock: clock}), nil
	}
	var source *clock.System
	began := time.Now()
	dir, err := persistence.Open(persistence.Options{
		FS: fsys, Path: m.dir,
		Clock:     func() clock.Record { return source.Record() },
		Stopwatch: func() time.Duration { return time.Since(began) },
		Log:       slog.New(slog.NewTextHandler(m.w, nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	if t := dir.Torn(); t != nil {
		fmt.Fprintln(m.w, t)
	}
	last, latest, err := dir.Clock()
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	o := clock.Options{}
	m.last, m.latest = last.Derived, latest
	if last != (clock.Record{}) {
		o.Start, _ = clock.Resumption{Last: last, Latest: latest}.Start(o)
	}
	source = clock.NewSystem(o)
	ks := keyspace.New(keyspace.Options{Clock: source})
	if err := dir.Load(ks, &persistence.Progress{}); err != nil {
		ks.Close()
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, ks, nil
}

// importKeys copies the live keys of redis-cell, decimal TATs with a TTL, from a running Redis or
// Valkey. After an error it keeps none of them.
func importKeys(args []string, w io.Writer) error {
	m, err := parseMigration("import", args, w)
	if err != nil {
		return err
	}
	dir, ks, err := m.open()
	if err != nil {
		return err
	}
	defer ks.Close()
	err = m.eachDatabase(func(ctx context.Context, c *redis.Client, db int) error {
		return m.importDatabase(ctx, c, ks, db)
	})
	if err == nil && !m.dryRun {
		_, err = dir.Rewrite(ks)
	}
	verb := "imported"
	if err != nil {
		verb = "read and not kept"
	}
	m.report(verb)
	if dir == nil {
		return err
	}
	if err == nil && !m.dryRun {
		fmt.Fprintf(m.w, "a server finds them with --appendonly yes --dir %s --appenddirname %s\n", filepath.Dir(m.dir), filepath.Base(m.dir))
	}
	return errors.Join(err, dir.Close())
}

// databases is the maximum number of databases of a server.
const databases = 16

// eachDatabase calls f for every database that exists on both sides or, if m.db is not negative,
// only for that one. It stops at the first error.
func (m *migration) eachDatabase(f func(ctx context.Context, c *redis.Client, db int) error) error {
	ctx := context.Background()
	for db := range databases {
		if m.db >= 0 && db != m.db {
			continue
		}
		o := *m.options
		o.DB = db
		c := redis.NewClient(&o)
		err := c.Ping(ctx).Err()
		if err != nil && m.db < 0 && db > 0 && m.isLast(err) {
			return c.Close()
		}
		if err == nil {
			err = f(ctx, c, db)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return fmt.Errorf("database %d: %w", db, explain(err, m.options))
		}
	}
	return nil
}

// isLast reports whether an error means that there are no more databases. For a node of a cluster
// it also prints that the node has only some of the keys.
func (m *migration) isLast(err error) bool {
	if strings.Contains(err.Error(), "SELECT is not allowed in cluster mode") {
		m.endProgress()
		fmt.Fprintln(m.w, "this is one node of a cluster, which has only some of the keys")
		return true
	}
	return strings.Contains(err.Error(), "out of range")
}

// importStep is the number of keys in one request.
const importStep = 1000

// longestTAT is the maximum number of bytes that are read of each value. A TAT is shorter, and the
// values of other keys may have megabytes.
const longestTAT = 64

func (m *migration) importDatabase(ctx context.Context, c *redis.Client, ks *keyspace.Keyspace, db int) error {
	size, err := c.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	m.total += size
	if m.skipped[beyond] == 0 && m.db < 0 {
		m.countBeyond(ctx, c)
	}
	for cursor := uint64(0); ; {
		var keys []string
		if keys, cursor, err = c.Scan(ctx, cursor, m.match, importStep).Result(); err != nil {
			return err
		}
		if err := m.importStep(ctx, c, ks, db, keys); err != nil {
			return err
		}
		if cursor == 0 {
			return nil
		}
	}
}

// beyond is the reason for which keys in databases that this server does not have are skipped.
var beyond = fmt.Sprintf("in a database beyond %d, which a server does not have", databases-1)

// countBeyond counts the keys in databases that cannot be imported as skipped. It does nothing if
// the user may not call INFO.
func (m *migration) countBeyond(ctx context.Context, c *redis.Client) {
	text, err := c.Info(ctx, "keyspace").Result()
	if err != nil {
		return // INFO may be forbidden; then these keys are not counted
	}
	for _, line := range strings.Split(text, "\r\n") {
		var db, keys int
		if n, _ := fmt.Sscanf(line, "db%d:keys=%d", &db, &keys); n == 2 && db >= databases {
			m.skipped[beyond] += keys
		}
	}
}

func (m *migration) importStep(ctx context.Context, c *redis.Client, ks *keyspace.Keyspace, db int, keys []string) error {
	pipe := c.Pipeline()
	values, ttls := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, k := range keys {
		values[i], ttls[i] = pipe.GetRange(ctx, k, 0, longestTAT-1), pipe.PTTL(ctx, k)
	}
	// The error for a key of another type is handled below.
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return err
	}
	for i, k := range keys {
		why, err := m.importKey(ks, db, k, values[i], ttls[i])
		if err != nil {
			return err
		}
		m.seen++
		if why != "" {
			m.skipped[why]++
		} else {
			m.copied++
		}
	}
	m.progress()
	return nil
}

func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// noSuchKey is the reply of PTTL for a key that does not exist.
const noSuchKey = -2

// importKey stores a key, or returns why it is skipped. All other reasons for not reading it are
// errors: a key must not be skipped because a script was running, or because the user may not read
// it.
func (m *migration) importKey(ks *keyspace.Keyspace, db int, key string, value *redis.StringCmd, ttl *redis.DurationCmd) (why string, err error) {
	text, err := value.Bytes()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"):
		return "not a string", nil
	case err != nil:
		return "", err
	case ttl.Err() != nil:
		return "", ttl.Err()
	case ttl.Val() == noSuchKey:
		return "gone meanwhile", nil
	case ttl.Val() < 0:
		return "without a TTL, so not redis-cell's", nil
	}
	tat, err := gcra.ParseDecimal(text)
	if err != nil || len(text) == longestTAT {
		return "not a number", nil
	}
	// The TAT is an instant of the civil clock, from which the keyspace's clock differs after a
	// step of the wall clock.
	tat = ks.Clock().Derived(tat)
	now := ks.Clock().Now()
	if tat <= now {
		return "over: its TAT has passed", nil
	}
	if len(key) > longestKey {
		return "its key is too long", nil
	}
	if m.dryRun {
		return "", nil
	}
	e := entry.Entry{Kind: entry.Cell, Expiry: min(tat, entry.NoExpiry-1)}
	if ends := now.Add(ttl.Val() + ttlSlack); ends < e.Expiry { // the expiry of the key was shortened
		e.Expiry, e.Value = ends, gcra.AppendState(nil, tat)
	}
	return "", ks.Restore(db, []byte(key), e)
}

// longestKey is the maximum length of a key in a command.
const longestKey = 16 << 10

// ttlSlack is the maximum time by which a key of redis-cell expires before its TAT if no client
// shortened its TTL: redis-cell rounds the TTL, and time passes during the import.
const ttlSlack = 2 * time.Second

// exportKeys writes the CL.THROTTLE keys of a directory to a running Redis, in the form of
// redis-cell. After an error some of the keys may have been written. A dry run writes none.
func exportKeys(args []string, w io.Writer) error {
	m, err := parseMigration("export", args, w)
	if err != nil {
		return err
	}
	if !persistence.Exists(persistence.OS{}, m.dir) {
		return fmt.Errorf("%s contains no state of a cellserver", m.dir)
	}
	dir, ks, err := m.open()
	if err != nil {
		return err
	}
	defer ks.Close()
	err = m.eachDatabase(func(ctx context.Context, c *redis.Client, db int) error {
		return m.exportDatabase(ctx, c, ks, db)
	})
	verb := "exported"
	if err != nil {
		verb = "tried, of which some may have been exported"
	}
	m.report(verb)
	return errors.Join(err, dir.Close())
}

func (m *migration) exportDatabase(ctx context.Context, c *redis.Client, ks *keyspace.Keyspace, db int) error {
	v := ks.NewHandle()
	defer v.Close()
	m.total += int64(v.Len(db))
	for cursor := uint64(0); ; {
		pipe := c.Pipeline()
		cursor = v.ScanEntries(db, cursor, importStep, func(key []byte, e entry.Entry) {
			m.seen++
			if !glob.Match([]byte(m.match), key) {
				m.skipped["not of the pattern"]++
				return
			}
			if e.Kind.Plain() != entry.Cell {
				m.skipped["not CL.THROTTLE's: "+e.Kind.Encoding()]++
				return
			}
			m.copied++
			tat := e.Expiry
			if len(e.Value) > 0 {
				tat = gcra.State(e.Value)
			}
			clock := ks.Clock()
			if !m.dryRun {
				pipe.Do(ctx, "SET", string(key), strconv.FormatInt(int64(clock.Civil(tat)), 10), "PXAT", millisUp(clock.Civil(e.Expiry)))
			}
		})
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		m.progress()
		if cursor == 0 {
			return nil
		}
	}
}

func millisUp(i limit.Instant) int64 { return int64(i/1e6) + 1 }

// progress draws the progress a few times a second.
func (m *migration) progress() {
	if now := time.Now(); now.Sub(m.shown) > 200*time.Millisecond && m.total > 0 {
		m.shown = now
		done := min(40, 40*int64(m.seen)/m.total)
		fmt.Fprintf(m.w, "\r[%-40s] %d of about %d", strings.Repeat("#", int(done)), m.seen, m.total)
	}
}

// endProgress ends the line of the progress bar, if there is one.
func (m *migration) endProgress() {
	if !m.shown.IsZero() {
		fmt.Fprintln(m.w)
		m.shown = time.Time{}
	}
}

func (m *migration) report(verb string) {
	if m.dryRun {
		verb = "would be " + verb
	}
	m.endProgress()
	fmt.Fprintf(m.w, "%d keys looked at, %d %s\n", m.seen, m.copied, verb)
	var reasons []string
	for why := range m.skipped {
		reasons = append(reasons, why)
	}
	slices.Sort(reasons)
	for _, why := range reasons {
		fmt.Fprintf(m.w, "%d skipped: %s\n", m.skipped[why], why)
	}
}
