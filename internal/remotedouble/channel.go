package remotedouble

import (
	"context"
	"sync"

	"github.com/cellserver/cellserver/remote/engine"
)

// Channel is the channel of an engine for messages about changes. Any goroutine may call its methods.
type Channel struct {
	mu    sync.Mutex
	down  bool                    // whether the channel is out of order; guarded by mu
	n     int                     // number of calls of Listen; guarded by mu
	heard map[int]func(err error) // the function of each call of Listen, by the number of the call; guarded by mu
}

// Listen implements [records.Engine]. The name of the channel does not matter.
func (c *Channel) Listen(ctx context.Context, _ string, heard func(err error)) {
	c.mu.Lock()
	if c.heard == nil {
		c.heard = map[int]func(error){}
	}
	c.n++
	me := c.n
	c.heard[me] = heard
	heard(c.fault())
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	delete(c.heard, me)
	c.mu.Unlock()
}

// fault returns the error of subscriptions while the channel is down. The caller holds mu.
func (c *Channel) fault() error {
	if c.down {
		return &engine.Error{Reason: engine.Broken, NotDone: true}
	}
	return nil
}

// Tell sends a message to all listeners, unless the channel is down.
func (c *Channel) Tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.down {
		c.all()
	}
}

// SetDown ends all subscriptions, or makes them again.
func (c *Channel) SetDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
	c.all()
}

// all notifies all listeners of the state of the channel. The caller holds mu.
func (c *Channel) all() {
	for _, heard := range c.heard {
		heard(c.fault())
	}
}
