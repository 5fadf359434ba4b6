package persistence

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/cellserver/cellserver/keyspace"
)

// ErrDamaged is what [Check] returns for a directory that a server would not load.
var ErrDamaged = errors.New("the directory is damaged")

// Check reads everything in a directory, whose server must not be running, and
// writes to w what it finds. With fix it cuts a damaged log at the first record that
// is wrong, giving up all that follows; a damaged base or manifest cannot be fixed.
func Check(fsys FS, dir string, fix bool, w io.Writer) error {
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	defer lock.Close()
	m, err := readManifest(fsys, dir)
	switch {
	case err != nil:
		return err
	case m == nil:
		return fmt.Errorf("%s holds no %s", dir, manifestName)
	}
	if m.base != nil {
		var p Progress
		if err := readSnapshot(fsys, dir, *m.base, &p, new(atomic.Bool), nothing{}.Restore); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: ok, %d keys\n", m.base.name, p.Keys.Load())
	}
	return checkIncrements(fsys, dir, m, fix, w)
}

func checkIncrements(fsys FS, dir string, m *manifest, fix bool, w io.Writer) error {
	var found []*increment
	for _, p := range m.increments {
		in, err := inspect(fsys, dir, p)
		if err == nil {
			err = in.checkEffects(fsys)
		}
		if err != nil {
			return err
		}
		found = append(found, in)
		fmt.Fprintf(w, "%s: %d bytes, ok up to %d, %d records, ended %t\n", in.name, in.size, in.valid, in.records, in.ended)
	}
	torn, err := judge(fsys, found)
	var bad *CorruptError
	switch {
	case errors.As(err, &bad):
		fmt.Fprintln(w, bad)
		if !fix {
			return ErrDamaged
		}
		torn = &Torn{File: bad.File}
	case err != nil:
		return err
	case torn == nil:
		fmt.Fprintln(w, "the log is whole")
		return nil
	default:
		fmt.Fprintf(w, "a server would start: %s\n", torn)
		if !fix {
			return nil
		}
	}
	d := &Dir{o: Options{FS: fsys, Path: dir}, manifest: m, found: found, torn: torn}
	if err := d.repair(); err != nil {
		return err
	}
	if err := writeManifest(fsys, dir, d.manifest); err != nil {
		return err
	}
	fmt.Fprintf(w, "fixed: %s was cut\n", filepath.Base(torn.File))
	return nil
}

// checkEffects looks into the records, whose checksums hold, and moves the valid
// end up to the first whose effects do not make sense.
func (in *increment) checkEffects(fsys FS) error {
	f, err := fsys.Open(in.path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", in.path, err)
	}
	defer f.Close()
	s := newScanner(f, in.valid, in.id)
	for {
		at, record := s.off, s.f.seq
		payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s again: %w", in.path, err)
		}
		if recordType(payload[0]) != typeEffects {
			continue
		}
		if err := eachEffect(payload[1:], nothing{}.Apply); err != nil {
			in.valid, in.seq, in.ended, in.sealed = at, record, false, false
			in.damage = &damage{offset: at, record: record, what: err.Error()}
			return nil
		}
	}
}

func eachEffect(record []byte, f func(keyspace.Effect) error) error {
	for len(record) > 0 {
		e, rest, err := keyspace.NextEffect(record)
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

// nothing is a sink that only looks.
type nothing struct{}

// Restore implements [Sink].
func (nothing) Restore(_ int, _ []byte, e keyspace.Entry) error { return keyspace.CheckEntry(e) }

// Apply implements [Sink].
func (nothing) Apply(e keyspace.Effect) error { return keyspace.CheckEffect(e) }
