package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/engine"
)

// copyStep is the number of keys that are processed together.
const copyStep = 1000

// stateStore accesses a store for a tool: it waits for replies, and repeats requests for a while if
// there is none.
type stateStore struct {
	engine *engine.Engine
	packer *remote.Packer
	// patience is the time for which a request is repeated after errors that may pass.
	patience time.Duration
}

// openStore returns the store at an address once it replies. It returns an error if the store does
// not reply within ten seconds.
func openStore(address, prefix string) (*stateStore, error) {
	at, err := engine.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	e, err := engine.Open(engine.Options{
		Address: at, Prefix: prefix, Timeout: 2 * time.Second,
		Elapsed: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		return nil, err
	}
	s := &stateStore{engine: e, packer: remote.NewPacker(), patience: 10 * time.Second}
	if _, err := s.get(nil); err != nil {
		e.Close()
		return nil, fmt.Errorf("the store does not answer: %w", err)
	}
	return s, nil
}

// again calls f, which reports its result by done, until the result is nil or an error that will
// not pass, but for at most s.patience. A swap that is sent twice has the effect of one.
func (s *stateStore) again(f func(done func(err error))) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	for {
		answer := make(chan error, 1)
		f(func(err error) { answer <- err })
		err := s.explained(<-answer)
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// explained returns err or, if err means that the nodes of the store are not known, an error with
// the cause of that.
func (s *stateStore) explained(err error) error {
	var e *engine.Error
	if !errors.As(err, &e) || e.Reason != engine.Starting {
		return err
	}
	switch fault := s.engine.Info().Fault; fault {
	case "":
		return err
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return &engine.Error{Reason: fault, NotDone: true}
	default:
		return &engine.Error{Reason: engine.Starting, Text: fault, NotDone: true}
	}
}

// passing reports whether a request that failed with err may soon succeed.
func passing(err error) bool {
	var e *engine.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Reason {
	case "NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "OOM", "READONLY", engine.Untrusted:
		return false
	}
	return true
}

func (s *stateStore) get(key []byte) (raw []byte, err error) {
	err = s.again(func(done func(err error)) {
		s.engine.Get(key, func(value []byte, err error) {
			raw = value
			done(err)
		})
	})
	return raw, err
}

func (s *stateStore) swap(w remote.Write) (applied bool, now []byte, err error) {
	err = s.again(func(done func(err error)) {
		s.engine.Swap(w, func(ok bool, value []byte, err error) {
			applied, now = ok, value
			done(err)
		})
	})
	return applied, now, err
}

func (s *stateStore) scan(cursor uint64) (next uint64, found []engine.Found, err error) {
	err = s.again(func(done func(err error)) {
		s.engine.Scan(cursor, copyStep, func(to uint64, all []engine.Found, err error) {
			next, found = to, all
			done(err)
		})
	})
	return next, found, err
}

// together calls f for every number below n, up to 64 of them concurrently. After an error it makes
// no further calls. It returns the first error.
func together(n int, f func(i int) error) error {
	var (
		work sync.WaitGroup
		once sync.Once
		why  error
	)
	places := make(chan struct{}, 64)
	failed := make(chan struct{})
	for i := range n {
		select {
		case <-failed:
		case places <- struct{}{}:
			work.Go(func() {
				defer func() { <-places }()
				if err := f(i); err != nil {
					once.Do(func() {
						why = err
						close(failed)
					})
				}
			})
			continue
		}
		break
	}
	work.Wait()
	return why
}

// isTerminal reports whether the output is a character device, which usually is a terminal. Output
// to another one, such as /dev/null, does no harm.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
