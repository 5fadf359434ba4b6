package limit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// readEvery is the time between two readings of the limits of a policy.
const readEvery = time.Minute

// errPolicy means that a reply of RL.POLICY GET has no limits.
var errPolicy = errors.New("the reply of RL.POLICY GET has no limits")

// readOn reads the limits of the policy at intervals of readEvery until ctx ends. After a failure the last limits
// remain in use.
func (l *Limiter) readOn(ctx context.Context) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, startTimeout)
		if err := l.readLimits(within); err != nil && ctx.Err() == nil {
			l.o.Log.Warn("limits of a policy not read", "policy", l.config.Policy, "reason", reasonOf(err))
		}
		cancel()
	}
}

// readLimits reads the limits of the policy for Local.
func (l *Limiter) readLimits(ctx context.Context) error {
	reply, err := l.client.Do(ctx, []string{"RL.POLICY", "GET", l.config.Policy})
	if err != nil {
		return fmt.Errorf("reading a policy: %w", err)
	}
	limits, _ := field(reply, "limits").([]any)
	unit := time.Second
	if ms, _ := field(reply, "ms").(int64); ms == 1 {
		unit = time.Millisecond
	}
	texts := make([]string, 0, len(limits))
	for _, text := range limits {
		if s, ok := text.(string); ok {
			texts = append(texts, s)
		}
	}
	if len(texts) == 0 || len(texts) != len(limits) {
		return errPolicy
	}
	clauses, err := parse(texts, unit)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fallback = clauses
	return nil
}

// field returns a field of a map, which is a list of names and values in RESP2.
func field(reply any, name string) any {
	switch reply := reply.(type) {
	case map[any]any:
		return reply[name]
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			if reply[i] == name {
				return reply[i+1]
			}
		}
	}
	return nil
}
