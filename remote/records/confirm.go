package records

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy/registry"
)

// confirmTime is the longest time for which a change waits for a replica.
const confirmTime = 500 * time.Millisecond

// errTaken is the error of a change that was in force and that the engine has lost in a failover.
const errTaken = decide.Unavailable("a failover of the store has taken the change of policies: make it again")

// Changing is a [Store] that remembers the latest change that was made through it. Only one goroutine at a time may use
// it.
type Changing struct {
	*Store
	made Version
}

// SetStrings does what [Store.SetStrings] does, and remembers the change.
func (c *Changing) SetStrings(pairs [][]byte, _ registry.Need) error {
	made, err := c.Store.set(pairs)
	if err == nil && made != (Version{}) {
		c.made = made
	}
	return err
}

// Delete does what [Store.Delete] does, and remembers the change.
func (c *Changing) Delete(keys ...[]byte) error { return c.SetStrings(deletions(keys), registry.Frees) }

// Changing returns a Changing of s.
func (s *Store) Changing() *Changing { return &Changing{Store: s} }

// Confirm waits until one replica of the engine has confirmed the latest change of c. It waits for 500 ms at most, plus
// the same time for earlier calls. Calls that wait at the same time share one request. It does not wait if c has made
// no change, if the engine has no replica, or if the user of the engine may not ask. The error is
// [registry.ErrUnconfirmed] if no replica has confirmed the change in time, and a [decide.Unavailable] if the engine
// has lost the change in a failover.
func (c *Changing) Confirm() error {
	if c.made == (Version{}) {
		return nil
	}
	return c.Store.confirm(c.made)
}

// confirms has the changes that wait for a replica.
type confirms struct {
	turn chan struct{} // has a buffer of one; the caller that has sent an element makes the request for all waiting changes

	mu      sync.Mutex
	waiting []*waiting // the changes that no request has taken yet; guarded by mu

	unconfirmed atomic.Int64           // number of changes that no replica has confirmed: see Unconfirmed
	fault       atomic.Pointer[string] // the reason why the last change was not confirmed: see ConfirmFault
}

// waiting is a change that waits for a replica.
type waiting struct {
	made Version
	done chan error // receives the result; has a buffer of one
}

// Unconfirmed returns the number of changes that no replica has confirmed in time. It does not wait.
func (s *Store) Unconfirmed() int64 { return s.confirms.unconfirmed.Load() }

// ConfirmFault returns the reason why the user of the engine may not run the command that waits for replicas; "" if it
// may or if that is not known yet. It does not wait.
func (s *Store) ConfirmFault() string {
	if is := s.confirms.fault.Load(); is != nil {
		return *is
	}
	return ""
}

// confirm does what [Changing.Confirm] does, for the change to the version made.
func (s *Store) confirm(made Version) error {
	c, w := &s.confirms, &waiting{made: made, done: make(chan error, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, w)
	c.mu.Unlock()
	for {
		select {
		case err := <-w.done:
			return err
		case c.turn <- struct{}{}:
		}
		c.mu.Lock()
		all := c.waiting
		c.waiting = nil
		c.mu.Unlock()
		if len(all) > 0 {
			s.confirmAll(all)
		}
		<-c.turn
	}
}

// confirmAll makes one request for all changes in all, and answers their callers.
func (s *Store) confirmAll(all []*waiting) {
	numbers := make([]string, len(all))
	for i, w := range all {
		numbers[i] = strconv.FormatUint(w.made.Number, 10)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
	defer cancel()
	is, err := s.o.Engine.Confirm(ctx, idsScript, []string{headKey, logKey, confirmKey}, numbers, confirmTime)
	var head Version
	var ids []uint64
	if err == nil {
		head, ids, err = parseIDs(is.Reply, len(all))
	}
	forbidden := s.forbids(err)
	for i, w := range all {
		switch {
		case forbidden:
			w.done <- nil
		case err == nil && taken(w.made, head, ids[i]):
			w.done <- errTaken
		case err != nil, is.Replicas > 0 && is.Have == 0:
			s.confirms.unconfirmed.Add(1)
			w.done <- registry.ErrUnconfirmed
		default:
			w.done <- nil
		}
	}
}

// taken reports whether the engine no longer has the change to the version v. head is the version of the engine, and id the id
// of the change with the number of v in the log, 0 if there is none.
func taken(v, head Version, id uint64) bool { return v.Number > head.Number || id != 0 && id != v.ID }

// forbids reports whether err, the error of a request to wait for replicas, says that the user of the engine may not
// make it. It remembers this, and logs it once.
func (s *Store) forbids(err error) bool {
	fault := &s.confirms.fault
	if err == nil {
		fault.Store(nil)
	}
	if !Forbidden(err) {
		return false
	}
	text := err.Error()
	if fault.Swap(&text) == nil {
		s.o.Log.Warn("the user of the store may not wait for replicas: a change of policies is answered before a replica has it", "error", err)
	}
	return true
}
