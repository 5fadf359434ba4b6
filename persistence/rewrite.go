package persistence

import (
	"context"
	"errors"
	"fmt"
)

// Rewritten describes a base that was written: its number of keys and its size in bytes.
type Rewritten struct {
	Keys  uint64
	Bytes int64
}

// Rewrite writes a new base from src. The base and the increment that is begun at the same time
// replace all earlier files. Without a log, the base alone replaces them. If the files of the log
// were given up, Rewrite makes the log accept effects again. It also completes what
// [Dir.AcceptState] has begun. After an error the earlier files remain in use.
func (d *Dir) Rewrite(src Source) (Rewritten, error) {
	return d.RewriteContext(context.Background(), src)
}

// RewriteContext does what [Dir.Rewrite] does. When ctx ends, it ends early and returns an error
// that wraps the cause.
func (d *Dir) RewriteContext(ctx context.Context, src Source) (Rewritten, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log != nil && (d.adopted != nil || d.log.Refuses()) {
		return d.heal(ctx, src)
	}
	if d.log != nil {
		if err := d.rotate(); err != nil {
			return Rewritten{}, err
		}
	}
	m := manifest{nextSeq: d.manifest.nextSeq}
	if d.log != nil {
		m.increments = d.manifest.increments[len(d.manifest.increments)-1:]
	}
	done, err := d.writeBase(ctx, &m, src)
	if err != nil {
		return done, err
	}
	// The base may have entries that are newer than the end of a torn log. So the effects since the
	// base was begun must be durable before the base is used.
	if d.log != nil {
		if err := d.log.Sync(); err != nil {
			return done, err
		}
		d.log.note() // note writes a durable-offset record, so that damage to these effects is not mistaken for the trace of a crash
	}
	return done, d.switchTo(&m, done)
}

// rotate begins a new increment, adds it to the manifest, and continues the log in it.
func (d *Dir) rotate() error {
	m := *d.manifest
	m.dataSet = d.dataSet()
	seg, err := d.newSegment(&m)
	if err != nil {
		return err
	}
	if err := writeManifest(d.o.FS, d.o.Path, &m); err != nil {
		// Either of the two manifests may be in force. Both are correct, since the new increment is
		// empty, but its name must not be used again.
		d.manifest.nextSeq = m.nextSeq
		err = errors.Join(err, seg.f.Close())
		d.drop(err, seg.part)
		return err
	}
	// The manifest now names the new increment, so its name is in use even if the log fails from
	// here on.
	d.manifest = &m
	if err := d.log.rotate(seg); err != nil {
		return errors.Join(err, seg.f.Close())
	}
	d.rest.Store(0)
	return nil
}

// writeBase writes a new base from src, makes it durable and adds it to m. done describes the base.
// After an error writeBase removes the file.
func (d *Dir) writeBase(ctx context.Context, m *manifest, src Source) (done Rewritten, err error) {
	p := &part{id: newID(), seq: m.nextSeq, base: true}
	p.name = fmt.Sprintf("base.%d.snap", p.seq)
	m.nextSeq++
	d.manifest.nextSeq = max(d.manifest.nextSeq, m.nextSeq)
	path := d.path(p.name)
	f, err := d.o.FS.Create(path)
	if err != nil {
		return done, fmt.Errorf("creating %s: %w", path, err)
	}
	w, err := newBlockWriter(f, &header{id: p.id, clock: d.o.Clock()})
	if err == nil {
		err = src.Snapshot(w.add, func() error { return d.interrupted(ctx, w) })
	}
	if err == nil {
		err = w.finish(d.o.Clock().Derived)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.o.FS.SyncDir(d.o.Path)
	}
	if err != nil {
		_ = d.o.FS.Remove(path) // no manifest names the file, so Remove only frees its space
		return done, fmt.Errorf("writing %s: %w", path, err)
	}
	m.base = p
	return Rewritten{Keys: w.keys, Bytes: w.bytes}, nil
}

// interrupted is the function pause of a snapshot. It returns an error if the server stops or ctx
// has ended, and otherwise writes the blocks that are complete.
func (d *Dir) interrupted(ctx context.Context, w *blockWriter) error {
	if d.stopping.Load() {
		return errStopping
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return w.pause(blockSize)
}

// switchTo makes m, whose base done describes, the manifest, and removes the files that m does not
// name. If that fails, it removes the base, unless it is unknown which manifest is in force.
func (d *Dir) switchTo(m *manifest, done Rewritten) error {
	m.dataSet = d.dataSet()
	if err := writeManifest(d.o.FS, d.o.Path, m); err != nil {
		if m.base != nil {
			d.drop(err, *m.base)
		}
		return err
	}
	d.manifest = m
	d.base.Store(done.Bytes)
	d.clean()
	return nil
}

// AcceptState makes a log whose files were given up accept effects at once, because memory has a
// whole new state. The effects go to a new increment, which counts once [Dir.Rewrite] has written
// the base before it. Until then a crash leaves the old files, so the new effects are not durable:
// under SyncAlways the callers that wait for the log continue to wait. AcceptState does nothing if
// the log does not refuse effects. After an error the log refuses effects as before.
func (d *Dir) AcceptState() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log == nil || !d.log.Refuses() {
		return nil
	}
	d.disown()
	m, err := d.takeOver(true)
	if err == nil {
		d.adopted = m
	}
	return err
}

// takeOver continues the log in a new increment, which the manifest in force does not name. It
// returns m, a manifest with that increment and without a base. adopt makes the log accept new
// effects at once: see [Log.replace].
func (d *Dir) takeOver(adopt bool) (m *manifest, err error) {
	m = &manifest{nextSeq: d.manifest.nextSeq}
	seg, err := d.newSegment(m)
	d.manifest.nextSeq = max(d.manifest.nextSeq, m.nextSeq+1)
	if err != nil {
		return nil, err
	}
	d.log.replace(seg, adopt)
	return m, nil
}

// heal writes a new base from src, which done describes, because the files of the log were given
// up. Then it makes the log accept effects again. Memory has the whole state, so the base does not
// need the old files. After an error the log refuses effects.
func (d *Dir) heal(ctx context.Context, src Source) (done Rewritten, err error) {
	if d.log.Refuses() {
		d.disown()
	}
	m := d.adopted
	d.adopted = nil
	if m == nil {
		if m, err = d.takeOver(false); err != nil {
			return done, err
		}
	}
	if done, err = d.writeBase(ctx, m, src); err == nil {
		if err = d.log.settle(); err == nil {
			err = d.switchTo(m, done)
		}
	}
	if err != nil {
		d.log.giveUp(err)
		d.drop(err, m.increments[0])
		return done, err
	}
	d.rest.Store(0)
	d.log.resume()
	return done, nil
}

// Sizes returns the size of the base and the size of all increments together, in bytes. A caller
// decides by them when to rewrite.
func (d *Dir) Sizes() (base, increments int64) {
	increments = d.rest.Load()
	if l := d.log; l != nil {
		increments += l.Stats().Size
	}
	return d.base.Load(), increments
}
