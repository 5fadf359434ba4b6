package server

import (
	"context"
	"sync"
	"time"
)

// stale returns the age of the policies if the latest attempt to follow their records has failed; otherwise it returns
// false.
func (p *policies) stale() (age time.Duration, is bool) {
	if p.why() == "" {
		return 0, false
	}
	return p.age()
}

// readyWithout is the time after the start of a server from which it is ready without policies of the store. A fault of
// the policies must not take the other limits away for long.
const readyWithout = time.Minute

// awaited reports whether the server has started recently and can still be expected to read the policies of the store:
// it has not read them yet, and its user may read them.
func (p *policies) awaited() bool {
	return p.records.Unread() != nil && !p.forbidden.Load() && !p.overdue.Load()
}

// followGap is the shortest time between the end of one attempt to follow the records of policies and the beginning of
// the next, however many messages of changes come.
const followGap = 20 * time.Millisecond

// wakes has the messages of the store that other servers may have changed policies. Only one goroutine may use it.
type wakes struct {
	changed chan struct{} // has a buffer of one, so that several messages between two attempts count as one
	calm    *time.Timer   // a timer that fires when followGap has passed since the latest attempt
}

// listen subscribes to the changes of policies in the store, until ctx ends. The caller must then call end, which waits for
// the goroutine.
func (p *policies) listen(ctx context.Context) (w *wakes, end func()) {
	w = &wakes{changed: make(chan struct{}, 1), calm: time.NewTimer(0)}
	var running sync.WaitGroup
	running.Go(func() {
		p.records.Listen(ctx, func() {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		})
	})
	return w, running.Wait
}

// wait waits until next fires, or a message has come and followGap has passed since the latest attempt. It returns false
// if ctx ends before.
func (w *wakes) wait(ctx context.Context, next *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case <-next.C:
		return true
	case <-w.changed:
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.calm.C:
		return true
	}
}
