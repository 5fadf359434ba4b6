package persistence

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/keyspace/effect"
)

// [Check] returns ErrDamaged for a directory that a server would not load, and ErrTorn for one that
// it would load after it has cut the end of the log, as after a crash. Neither directory is intact.
var (
	ErrDamaged = errors.New("the directory is damaged")
	ErrTorn    = errors.New("the log is torn: a server would cut it, and start")
)

// Check reads all files in a directory, whose server must not be running. It loads them as a
// starting server does, into as much memory, and writes the results to w. With fix it cuts a
// damaged log at the first wrong record and discards the rest. A damaged base or manifest cannot be
// fixed. Without fix it changes nothing.
func Check(fsys FS, dir string, fix bool, w io.Writer) error {
	m, unlock, err := claim(fsys, dir)
	if err != nil {
		return err
	}
	defer unlock()
	c := &check{Dir: Dir{o: Options{FS: fsys, Path: dir}, manifest: m}, w: w}
	found, err := c.inspect()
	if err != nil {
		return err
	}
	defer c.ks.Close()
	if err := c.base(); err != nil {
		return err
	}
	if !found && !fix {
		return ErrDamaged
	}
	switch at, err := c.rehearse(); {
	case err != nil && at == nil:
		return err
	case at != nil:
		fmt.Fprintln(w, err)
		if !fix {
			return ErrDamaged
		}
		c.torn = &Torn{File: at.path}
	}
	if err := c.ks.Whole(); err != nil {
		fmt.Fprintf(w, "%s: %v, and cutting the log does not help: `cellserver dump` shows what there is\n", dir, err)
		return ErrDamaged
	}
	return c.conclude(fix)
}

// claim reads the manifest of a directory, which must have one, and keeps servers from using the
// directory until unlock is called. Without a manifest it leaves nothing in the directory.
func claim(fsys FS, dir string) (m *manifest, unlock func(), err error) {
	if m, err = readManifest(fsys, dir); err == nil && m == nil {
		err = fmt.Errorf("%s holds no %s", dir, manifestName)
	}
	if err != nil {
		return nil, nil, err
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, syscall.EROFS):
		return m, func() {}, nil // a server cannot write there either
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	if m, err = readManifest(fsys, dir); err == nil && m == nil { // the server may have changed it before it stopped
		err = fmt.Errorf("%s holds no %s", dir, manifestName)
	}
	unlock = func() { _ = lock.Close() } // the error does not matter: nothing was written
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return m, unlock, nil
}

// check is the state of a [Check].
type check struct {
	Dir
	w  io.Writer
	ks *keyspace.Keyspace // the data that a server would load
}

// inspect reads the increments, judges them, and makes a keyspace whose clock continues from
// theirs. It reports whether they are intact or torn; for a torn log, torn is where a server would
// cut it.
func (c *check) inspect() (sound bool, err error) {
	for _, p := range c.manifest.increments {
		in, err := inspect(c.o.FS, c.o.Path, p)
		if err != nil {
			return false, err
		}
		c.found = append(c.found, in)
		fmt.Fprintf(c.w, "%s: %d bytes, ok up to %d, %d records, ended %t\n", in.name, in.size, in.valid, in.records, in.ended)
	}
	c.torn, err = judge(c.o.FS, c.found)
	var bad *CorruptError
	switch {
	case errors.As(err, &bad):
		fmt.Fprintln(c.w, bad)
		c.torn = &Torn{File: bad.File}
	case err != nil:
		return false, err
	case c.torn != nil:
		fmt.Fprintf(c.w, "a server would cut it: %s\n", c.torn)
	}
	last, latest, err := c.Clock()
	if err != nil {
		return false, err
	}
	o := clock.Options{}
	if last != (clock.Record{}) {
		o.Start, _ = clock.Resumption{Last: last, Latest: latest}.Start(o)
	}
	c.ks = keyspace.New(keyspace.Options{Clock: clock.NewSystem(o)})
	return bad == nil, nil
}

// base loads the base.
func (c *check) base() error {
	p := c.manifest.base
	if p == nil {
		return nil
	}
	var read Progress
	if err := readSnapshot(c.o.FS, c.o.Path, *p, &read, new(atomic.Bool), c.ks.Restore); err != nil {
		return err
	}
	fmt.Fprintf(c.w, "%s: ok, %d keys\n", p.name, read.Keys.Load())
	return nil
}

// rehearse applies all records up to the end of the log, or to where it would be cut. If an effect
// cannot be applied although its checksum is right, it becomes the end of its increment, which is
// returned with the error.
func (c *check) rehearse() (at *increment, err error) {
	for _, in := range c.kept() {
		if at, err = c.rehearseOne(in); err != nil {
			return at, err
		}
	}
	return nil, nil
}

func (c *check) rehearseOne(in *increment) (at *increment, err error) {
	f, err := c.o.FS.Open(in.path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", in.path, err)
	}
	defer f.Close()
	for s := newScanner(f, in.valid, in.id); ; {
		offset, record := s.off, s.f.seq
		payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s again: %w", in.path, err)
		}
		if recordType(payload[0]) != typeEffects {
			continue
		}
		if err := eachEffect(payload[1:], c.ks.Apply); err != nil {
			in.valid, in.seq, in.ended, in.sealed = offset, record, false, false
			return in, corrupt(in.path, offset, record, err.Error())
		}
	}
}

// conclude reports what a server would load, and with fix cuts the log if it is torn or damaged.
func (c *check) conclude(fix bool) error {
	switch {
	case c.torn == nil:
		fmt.Fprintln(c.w, "the log is whole")
		return nil
	case !fix:
		return ErrTorn
	}
	if err := c.repair(); err != nil {
		return err
	}
	if err := writeManifest(c.o.FS, c.o.Path, c.manifest); err != nil {
		return err
	}
	fmt.Fprintf(c.w, "fixed: %s was cut\n", filepath.Base(c.torn.File))
	return nil
}

func eachEffect(record []byte, f func(effect.Effect) error) error {
	for len(record) > 0 {
		e, rest, err := effect.Next(record)
		if err == nil {
			err = f(e)
		}
		if err != nil {
			return err
		}
		record = rest
	}
	return nil
}
