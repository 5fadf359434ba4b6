package replication

import (
	"context"
	"log/slog"
	"sync"
)

// fileRewrite writes the state of a full synchronization to the files. Only the goroutine of the
// link begins or interrupts it.
type fileRewrite struct {
	cancel context.CancelCauseFunc // nil before the first
	done   sync.WaitGroup          // of the goroutine that finishes it
}

// begin lets the log continue behind the new state, and writes that state to the files on a goroutine
// of its own, which takes as long as a snapshot.
func (r *fileRewrite) begin(f Files, log *slog.Logger) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	finish := f.Rewrite()
	r.done.Go(func() {
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

// interrupt ends a rewrite that is under way and waits for its end. The files keep their old state.
func (r *fileRewrite) interrupt(why error) {
	if r.cancel != nil {
		r.cancel(why)
	}
	r.done.Wait()
}
