package records

import (
	"context"
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/engine"
)

// Listen calls changed when another server may have changed the records, until ctx ends. It subscribes to the messages
// of changes, and calls changed also when a subscription begins. Messages may be lost, so [Store.Follow] has to be
// called at intervals, too. changed must not block. Listen blocks.
func (s *Store) Listen(ctx context.Context, changed func()) {
	told := false
	s.o.Engine.Listen(ctx, headKey, func(err error) {
		s.subscribed.Store(err == nil)
		switch {
		case err == nil:
			told = false
			changed()
		case Forbidden(err) && !told:
			told = true
			s.o.Log.Warn("the user of the store may not subscribe to changes of policies: they are noticed by asking each second", "error", err)
		}
	})
	s.subscribed.Store(false)
}

// Subscribed reports whether the engine notifies this server of changes, because Listen has a subscription. It does not
// wait.
func (s *Store) Subscribed() bool { return s.subscribed.Load() }

// Lag returns the age that the latest change of another server had when this server observed it in the log, by the
// clock of the engine. known is false before the first such change. It does not wait.
func (s *Store) Lag() (lag time.Duration, known bool) {
	lag = time.Duration(s.lag.Load())
	return lag, lag >= 0
}

// observed stores the lag of the change c, which was observed at now.
func (s *Store) observed(c *change, now limit.Instant) {
	s.lag.Store(max(0, int64(now)-c.millis*1e6))
}

// Forbidden reports whether err, an error of the engine or nil, says that the user of the engine lacks a permission.
func Forbidden(err error) bool {
	var why *engine.Error
	return errors.As(err, &why) && why.Reason == "NOPERM"
}
