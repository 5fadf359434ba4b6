package replication

import (
	"context"
	"log/slog"
	"sync"
)

// fileRewrite writes the state that has arrived by a full resynchronization to the files. One
// goroutine at a time uses it: the goroutine of the link or, between two links, that of Run.
type fileRewrite struct {
	cancel context.CancelCauseFunc // ends the present rewrite early; nil before the first rewrite
	done   sync.WaitGroup          // counts the goroutine that finishes a rewrite
}

// begin makes the log accept effects again, which follow the new state, and starts a goroutine that
// writes the new state to the files f. That takes as long as a snapshot, and its failure is logged.
// begin itself does not wait for it.
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
			log.Info("the new state was not written to disk: the files keep the old one", "reason", context.Cause(ctx))
		default:
			log.Warn("writing the state of the primary to disk failed", "error", err)
		}
	})
}

// interrupt cancels a rewrite that is in progress, and waits until it has ended. why is the reason
// that is logged. The files then keep their old state.
func (r *fileRewrite) interrupt(why error) {
	if r.cancel != nil {
		r.cancel(why)
	}
	r.done.Wait()
}
