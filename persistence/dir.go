package persistence

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// Source provides the state that is written to a base. [keyspace.Keyspace] implements it.
type Source interface {
	// Snapshot calls add for every entry, and pause between locks: see
	// [keyspace.Keyspace.Snapshot].
	Snapshot(add func(db int, key []byte, e entry.Entry), pause func() error) error
}

// Options configure a [Dir]. All fields but DataSet must be set. [Restore] and code that only reads
// a directory need only FS and Path.
type Options struct {
	FS   FS
	Path string // path of the directory
	// Clock reads all clocks. Its records are written to the files.
	Clock func() clock.Record
	// Stopwatch reads a monotonic clock. It is used only to measure durations.
	Stopwatch func() time.Duration
	// DataSet returns the data set in memory. It is called whenever a manifest is written, and must
	// be quick. It may be nil; then the manifest names no data set.
	DataSet func() DataSet
	Log     *slog.Logger
}

// Dir is a directory with the persistent state of a server. It belongs to one process at a time.
// Once the server has loaded its files and called Start, any goroutine may call DataSet,
// KeepDataSet, Rewrite, AcceptState, Sizes, Interrupt and Close.
type Dir struct {
	o    Options
	lock io.Closer

	mu       sync.Mutex   // held while the manifest is changed or a base is written
	manifest *manifest    // the manifest in use, never nil; guarded by mu
	found    []*increment // the increments as Read has found them
	torn     *Torn        // the end of the log that was cut off, or nil: see the type Torn
	log      *Log         // the log; nil before Start, and if there is no log; guarded by mu
	// adopted is the manifest that AcceptState has made and that still lacks its base; nil if there
	// is none. Guarded by mu.
	adopted *manifest

	stopping atomic.Bool // whether loading, or the writing of a base, has to end early

	base atomic.Int64 // size of the base in bytes
	rest atomic.Int64 // size in bytes of all increments but the last
}

// lockName is the name of the file whose lock keeps other processes from using the directory.
const lockName = "cellserver.lock"

// Open locks the directory o.Path and reads it: see [Take] and [Dir.Read]. After an error it is not
// locked.
func Open(o Options) (*Dir, error) {
	d, err := Take(o)
	if err != nil {
		return nil, err
	}
	if err := d.Read(); err != nil {
		_ = d.lock.Close() // an error does not matter, because nothing was changed
		return nil, err
	}
	return d, nil
}

// Take creates the directory o.Path if there is none, and locks it until [Dir.Close]. The error
// wraps [ErrLocked] if another process uses the directory.
func Take(o Options) (d *Dir, err error) {
	d = &Dir{o: o, manifest: &manifest{nextSeq: 1}}
	if err := o.FS.Mkdir(o.Path); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	if err := o.FS.SyncDir(filepath.Dir(o.Path)); err != nil {
		return nil, fmt.Errorf("syncing %s: %w", filepath.Dir(o.Path), err)
	}
	if d.lock, err = o.FS.Lock(d.path(lockName)); err != nil {
		return nil, fmt.Errorf("%s: %w", d.path(lockName), err)
	}
	return d, nil
}

func (d *Dir) path(name string) string { return filepath.Join(d.o.Path, name) }

// Read reads the manifest and all increments, and decides whether they are intact or torn. It
// changes nothing. It returns an error if a file is corrupt or cannot be read, or if there are files
// with state but no manifest. The error for a corrupt file says what the operator can do.
func (d *Dir) Read() error {
	m, err := readManifest(d.o.FS, d.o.Path)
	switch {
	case err != nil:
		return err
	case m == nil:
		return refuseOrphans(d.o.FS, d.o.Path)
	}
	d.manifest = m
	d.found, d.torn, err = inspectAll(d.o.FS, d.o.Path, m)
	return err
}

// inspectAll inspects all increments that m lists, in order, and judges them. torn is the
// incomplete end of the log, nil if there is none. If judge returns an error, found still has all
// increments.
func inspectAll(fsys FS, dir string, m *manifest) (found []*increment, torn *Torn, err error) {
	for _, p := range m.increments {
		in, err := inspect(fsys, dir, p)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, in)
	}
	torn, err = judge(fsys, found)
	return found, torn, err // found has all increments, even if some are corrupt
}

// Empty reports whether there is nothing to load: the directory has neither a base nor an
// increment.
func (d *Dir) Empty() bool { return d.manifest.base == nil && len(d.found) == 0 }

// Torn returns the incomplete end of the log that Read has found, or nil. [Dir.Start] cuts it off.
func (d *Dir) Torn() *Torn { return d.torn }

// Clock returns c, the last clock record of the files, or the zero Record if there is none, and
// latest, an instant that is not earlier than any effect in the files. The error says that the base
// cannot be read.
func (d *Dir) Clock() (c clock.Record, latest limit.Instant, err error) {
	if p := d.manifest.base; p != nil {
		if c, latest, err = snapshotClock(d.o.FS, d.path(p.name), p.id); err != nil {
			return c, latest, err
		}
	}
	for _, in := range d.kept() {
		if in.clock.Derived >= c.Derived {
			c = in.clock
		}
		latest = max(latest, in.latest)
	}
	return c, max(latest, c.Derived), nil
}

// Origin returns the last origin record of the log. It returns nil if there is none, or if effects
// follow the record: then the state does not come from a primary any more.
func (d *Dir) Origin() (last *Origin) {
	for _, in := range d.kept() {
		if in.records > 0 || in.origin != nil {
			last = in.origin
		}
	}
	return last
}

// kept returns the increments up to and including the torn one, or all increments if none is torn.
func (d *Dir) kept() []*increment {
	if d.torn != nil {
		for i, in := range d.found {
			if in.path == d.torn.File {
				return d.found[:i+1]
			}
		}
	}
	return d.found
}

// Load passes all data to sink: the entries of the base, then the effects of the increments. It
// counts in progress what it has read. [Dir.Interrupt] ends it early, with an error. The other
// errors say that a file is corrupt or cannot be read. An entry or effect that sink refuses counts as
// corrupt.
func (d *Dir) Load(sink Sink, progress *Progress) error {
	total := int64(0)
	for _, in := range d.kept() {
		total += in.valid
	}
	if p := d.manifest.base; p != nil {
		size, err := sizeOf(d.o.FS, d.path(p.name))
		if err != nil {
			return err
		}
		d.base.Store(size)
		progress.Total.Store(total + size)
		if err := readSnapshot(d.o.FS, d.o.Path, *p, progress, &d.stopping, sink.Restore); err != nil {
			return err
		}
	}
	progress.Total.Store(total + d.base.Load())
	d.rest.Store(total)
	if err := replay(d.o.FS, d.kept(), sink, progress, &d.stopping); err != nil {
		return err
	}
	if err := sink.Whole(); err != nil {
		return fmt.Errorf("the files in %s are invalid: %w", d.o.Path, err)
	}
	return nil
}

// Start repairs torn files, begins a new increment, writes a manifest that lists it, and returns
// the log that appends to the increment. It removes the files of this package that the manifest
// does not list. It replaces the fields Stopwatch, Clock and Log of o by those of [Options]. After
// an error there is no log.
func (d *Dir) Start(o LogOptions) (*Log, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.repair(); err != nil {
		return nil, err
	}
	m := *d.manifest
	for _, in := range d.kept() {
		if in.valid > headerSize {
			continue
		}
		m.increments = without(m.increments, in.part)
	}
	m.dataSet = d.dataSet()
	seg, err := d.newSegment(&m)
	if err != nil {
		return nil, err
	}
	if err := writeManifest(d.o.FS, d.o.Path, &m); err != nil {
		err = errors.Join(err, seg.f.Close())
		d.drop(err, seg.part)
		return nil, err
	}
	d.manifest = &m
	d.warnOfState()
	d.clean()
	o.Stopwatch, o.Clock, o.Log = d.o.Stopwatch, d.o.Clock, d.o.Log
	d.log = newLog(seg, o)
	return d.log, nil
}

func without(ps []part, p part) []part {
	var rest []part
	for _, q := range ps {
		if q != p {
			rest = append(rest, q)
		}
	}
	return rest
}

// newSegment creates a new increment, makes its header durable, and adds it to m. After an error it
// removes the file.
func (d *Dir) newSegment(m *manifest) (*segment, error) {
	p := part{id: newID(), seq: m.nextSeq}
	p.name = fmt.Sprintf("incr.%d.log", p.seq)
	path := d.path(p.name)
	f, err := d.o.FS.Create(path)
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", path, err)
	}
	h := header{id: p.id, clock: d.o.Clock()}
	if err = writeAll(f, h.append(nil, incrementMagic)); err == nil {
		if err = f.Sync(); err == nil {
			err = d.o.FS.SyncDir(d.o.Path)
		}
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("writing %s: %w", path, err), f.Close())
		d.drop(err, p)
		return nil, err
	}
	m.increments = append(m.increments[:len(m.increments):len(m.increments)], p)
	m.nextSeq = p.seq + 1
	return &segment{part: p, path: path, f: f, framer: newFramer(p.id), horizon: h.clock.Derived.Add(clockReach)}, nil
}

// repair cuts torn increments and adds missing end records, so that a later reader knows that the
// increments are complete. It drops the increments after a torn one from the manifest in memory.
// An increment before the last one may need a repair, too: a crash may have come after the manifest
// named the next increment and before the log continued in it.
func (d *Dir) repair() error {
	kept := d.kept()
	for _, in := range kept {
		if in.ended && in.valid == in.size || in.size == headerSize {
			continue
		}
		if err := in.seal(d.o.FS); err != nil {
			return err
		}
	}
	m := *d.manifest
	m.increments = m.increments[:len(kept):len(kept)]
	d.manifest = &m
	return nil
}

// seal cuts the file of in to its valid part and appends an end record, unless there is one.
func (in *increment) seal(fsys FS) error {
	f, err := fsys.Append(in.path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", in.path, err)
	}
	defer f.Close()
	if err = f.Truncate(in.valid); err == nil {
		err = f.Sync()
	}
	if err == nil && !in.sealed {
		framer := newFramer(in.id)
		framer.seq = in.seq
		if err = writeAll(f, framer.durableRecord(nil, typeEnd, in.valid)); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return fmt.Errorf("repairing %s: %w", in.path, err)
	}
	return nil
}

// warnOfState logs the files that clean is about to remove and that have more than a header. A crash
// during a rewrite leaves such files, and so does an operator that replaces the newest manifest by an
// older one.
func (d *Dir) warnOfState() {
	for _, n := range d.unnamed() {
		if size, err := sizeOf(d.o.FS, d.path(n)); err == nil && size > headerSize {
			d.o.Log.Warn("removing a file that the manifest does not list", "file", n, "bytes", size)
		}
	}
}

// clean removes the files of this package that the manifest does not list. It logs failures.
func (d *Dir) clean() {
	for _, n := range d.unnamed() {
		if err := d.o.FS.Remove(d.path(n)); err != nil {
			d.o.Log.Warn("an obsolete file cannot be removed", "file", n, "error", err)
		}
	}
}

// unnamed returns the names of the files of this package that the manifest does not list, and none
// if the directory cannot be listed.
func (d *Dir) unnamed() (ours []string) {
	names, err := d.o.FS.List(d.o.Path)
	if err != nil {
		return nil // files that are not removed do no harm
	}
	named := map[string]bool{manifestName: true, lockName: true}
	for _, p := range d.manifest.parts() {
		named[p.name] = true
	}
	for _, n := range names {
		if !named[n] && isOurs(n) {
			ours = append(ours, n)
		}
	}
	return ours
}

// isOurs reports whether name is the name of an increment, a base, or a manifest that is not in use
// yet.
func isOurs(name string) bool {
	for _, pattern := range []string{incrementPattern, basePattern, manifestName + tmpSuffix} {
		if ok, _ := filepath.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// Interrupt makes the writing of a base, or loading, end early with an error, because the server
// stops. It cannot be undone.
func (d *Dir) Interrupt() { d.stopping.Store(true) }

// Close interrupts the writing of a base, closes the log, if there is one, and unlocks the
// directory. It returns the errors of [Log.Close] and of the unlocking.
func (d *Dir) Close() error {
	d.Interrupt()
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if d.log != nil {
		if d.adopted != nil {
			d.log.giveUp(errStopping)
			d.disown()
		}
		err = d.log.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// drop removes the file p, which the manifest does not list because of err, so that retries do not
// fill a full disk further. If err leaves open which manifest is in force, the file stays, and the
// next rewrite removes it.
func (d *Dir) drop(err error, p part) {
	var unsure *unsureError
	if !errors.As(err, &unsure) {
		_ = d.o.FS.Remove(d.path(p.name)) // if the removal fails, the file does no harm
	}
}

// disown removes the increment that AcceptState has made, because the log was given up again.
func (d *Dir) disown() {
	if d.adopted != nil {
		d.drop(nil, d.adopted.increments[0])
		d.adopted = nil
	}
}
