package replication

import (
	"context"
	"log/slog"
	"sync"
)

// adoption has the files adopt a state that is whole. Who adopts or interrupts is the one goroutine
// that may use the follower.
type adoption struct {
	cancel context.CancelCauseFunc // nil before the first
	done   sync.WaitGroup          // of the goroutine that finishes it
}

// begin has the log go on with the state, and a goroutine the files adopt it, which takes as long
// as a snapshot.
func (a *adoption) begin(k Keeper, log *slog.Logger) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.cancel = cancel
	finish := k.Adopt()
	a.done.Go(func() {
		defer cancel(nil)
		err := finish(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			log.Info("the files keep the state of before", "reason", context.Cause(ctx))
		default:
			log.Warn("the state of the primary is not in the files yet", "error", err)
		}
	})
}

// interrupt ends an adoption that is under way, with the files of before.
func (a *adoption) interrupt(why error) {
	if a.cancel != nil {
		a.cancel(why)
	}
	a.done.Wait()
}
