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

// These are the errors of [Check] for a directory that is not intact. ErrDamaged means that a
// server would not load the directory. ErrTorn means that a server would cut the end of the log, as
// after a crash, and then load the directory.
var (
	ErrDamaged = errors.New("the directory is damaged")
	ErrTorn    = errors.New("the log is torn: a server would cut it, and start")
)

// Check reads all files in the directory dir, whose server must not be running, and writes the
// results to w. It loads the files as a starting server does, and needs as much memory. If fix is
// true, Check cuts a torn or damaged log at the first invalid record and discards the rest. A
// damaged base or manifest cannot be fixed. If fix is false, Check changes none of the files that it
// reads. It returns nil for an intact or fixed directory, [ErrDamaged], [ErrTorn], or an error of a
// file.
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

// claim returns the manifest m of the directory dir, and locks the directory, so that no server
// uses it until unlock is called. It returns an error if there is no manifest; then it creates no
// lock file. A directory on a read-only file system is not locked.
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
		return m, func() {}, nil // no server can use the directory meanwhile
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	if m, err = readManifest(fsys, dir); err == nil && m == nil { // the server may have changed the manifest before it stopped
		err = fmt.Errorf("%s holds no %s", dir, manifestName)
	}
	unlock = func() { _ = lock.Close() } // an error does not matter, because nothing was written
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return m, unlock, nil
}

// check has the state of a call of [Check].
type check struct {
	Dir
	w  io.Writer
	ks *keyspace.Keyspace // the data that a server would load from the directory
}

// inspect reads the increments, judges them, and makes an empty keyspace whose clock continues from
// that of the files. sound is false if the increments are corrupt. If they are torn or corrupt,
// inspect sets c.torn, whose File is the increment that can be cut.
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

// base loads the base, if the manifest names one, into the keyspace.
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

// rehearse applies the records of the log to the keyspace, up to the end of the log or to the place
// where it would be cut. If an effect cannot be applied although the checksum of its record is
// right, rehearse returns an error and, as at, the increment with the record; the increment then
// counts as valid only up to the record.
func (c *check) rehearse() (at *increment, err error) {
	for _, in := range c.kept() {
		if at, err = c.rehearseOne(in); err != nil {
			return at, err
		}
	}
	return nil, nil
}

// rehearseOne applies the records of the increment in. It returns the same results as rehearse.
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

// conclude returns nil if the log is intact. Otherwise it cuts the log if fix is true, and returns
// ErrTorn if fix is false. It writes the result to c.w, unless it returns an error.
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

// eachEffect calls f for each effect of record in order, and stops at the first error.
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
