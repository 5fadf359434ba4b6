package persistence

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/keyspace/effect"
)

// replay passes the effects of the increments ins to sink. Effects of one key are passed in order.
// Effects of different keys are passed by several goroutines, as many as GOMAXPROCS. replay returns
// when all effects have been applied, with an error of a file or of sink, or when stop is set, with
// errStopping.
func replay(fsys FS, ins []*increment, sink Sink, progress *Progress, stop *atomic.Bool) error {
	r := newReplayer(sink, progress)
	r.stop = stop
	var err error
	var last *increment
	for _, last = range ins {
		if err = r.file(fsys, last); err != nil {
			break
		}
	}
	if why := r.close(); why != nil && err == nil {
		err = corrupt(last.path, last.valid, last.seq, "before this record: "+why.Error())
	}
	return err
}

// replayBatch is the approximate number of bytes of effects that a worker gets at once.
const replayBatch = 64 << 10

// replayer distributes effects to workers by their keys.
type replayer struct {
	sink     Sink
	progress *Progress
	stop     *atomic.Bool // set to end the replay early
	seed     maphash.Seed
	batches  [][]byte              // the effects for each worker that were not sent yet
	work     []chan []byte         // a channel of batches for each worker
	free     chan []byte           // buffers of batches that were applied, for reuse
	busy     sync.WaitGroup        // counts the batches that workers have not finished
	ended    sync.WaitGroup        // counts the workers that have not ended
	failed   atomic.Pointer[error] // the first error of a worker
}

// newReplayer returns a replayer and starts its workers.
func newReplayer(sink Sink, progress *Progress) *replayer {
	n := runtime.GOMAXPROCS(0)
	r := &replayer{sink: sink, progress: progress, seed: maphash.MakeSeed(), free: make(chan []byte, 4*n)}
	for range n {
		work := make(chan []byte, 2)
		r.batches = append(r.batches, nil)
		r.work = append(r.work, work)
		r.ended.Go(func() {
			for batch := range work {
				r.apply(batch)
			}
		})
	}
	return r
}

// apply passes the effects of batch to the sink, in the goroutine of a worker, until one fails.
func (r *replayer) apply(batch []byte) {
	defer r.busy.Done()
	for rest := batch; len(rest) > 0 && r.failed.Load() == nil; {
		e, after, err := effect.Next(rest)
		if err == nil {
			err = r.sink.Apply(e)
		}
		if err != nil {
			r.failed.CompareAndSwap(nil, &err)
			return
		}
		rest = after
	}
	select {
	case r.free <- batch[:0]:
	default:
	}
}

// file replays the valid part of the increment in. It returns before the workers have applied the
// last effects. It returns errStopping if r.stop is set.
func (r *replayer) file(fsys FS, in *increment) error {
	f, err := fsys.Open(in.path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", in.path, err)
	}
	defer f.Close()
	s := newScanner(f, in.valid, in.id)
	for {
		if r.stop.Load() {
			return errStopping
		}
		at, record := s.off, s.f.seq
		payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s again: %w", in.path, err)
		}
		r.progress.Done.Add(s.off - at)
		if recordType(payload[0]) != typeEffects {
			continue
		}
		r.progress.Records.Add(1)
		if err := r.deal(payload[1:]); err != nil {
			return corrupt(in.path, at, record, err.Error())
		}
		if why := r.failed.Load(); why != nil {
			// The failing record is this one or an earlier one. check-aof finds the exact record in
			// a second pass.
			return corrupt(in.path, at, record, "at or before this record: "+(*why).Error())
		}
	}
}

// deal gives the effects of record to the workers of their keys. At a flush it waits until all
// workers are done, and applies the flush itself.
func (r *replayer) deal(record []byte) error {
	for len(record) > 0 {
		e, rest, err := effect.Next(record)
		if err != nil {
			return err
		}
		if e.Flush {
			r.drain()
			if err := r.sink.Apply(e); err != nil {
				return err
			}
		} else {
			i := int(maphash.Bytes(r.seed, e.Key) % uint64(len(r.work)))
			r.batches[i] = append(r.batches[i], record[:len(record)-len(rest)]...)
			if len(r.batches[i]) >= replayBatch {
				r.send(i)
			}
		}
		record = rest
	}
	return nil
}

// send sends the batch of worker i to the worker, and begins a new batch. It waits if the worker is
// busy.
func (r *replayer) send(i int) {
	r.busy.Add(1)
	r.work[i] <- r.batches[i]
	select {
	case r.batches[i] = <-r.free:
	default:
		r.batches[i] = make([]byte, 0, replayBatch+replayBatch/16)
	}
}

// drain sends all batches to the workers and waits until all effects have been applied.
func (r *replayer) drain() {
	for i := range r.batches {
		if len(r.batches[i]) > 0 {
			r.send(i)
		}
	}
	r.busy.Wait()
}

// close waits until all effects have been applied, ends the workers, and returns the first error of
// a worker.
func (r *replayer) close() error {
	r.drain()
	for _, w := range r.work {
		close(w)
	}
	r.ended.Wait()
	if why := r.failed.Load(); why != nil {
		return *why
	}
	return nil
}
