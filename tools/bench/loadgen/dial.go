package loadgen

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// dialAll opens n sessions, at most 32 at a time, within a minute.
func dialAll(ctx context.Context, target *Target, n int) ([]*Session, error) {
	const atOnce = 32
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sessions := make([]*Session, n)
	var next atomic.Int64
	var wait sync.WaitGroup
	var once sync.Once
	var failed error
	for range min(atOnce, n) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				s, err := target.Dial(ctx)
				if err != nil {
					once.Do(func() { failed = err })
					cancel()
					return
				}
				sessions[i] = s
			}
		})
	}
	wait.Wait()
	return sessions, failed
}

func closeAll(sessions []*Session) {
	for _, s := range sessions {
		if s != nil {
			s.Close()
		}
	}
}
