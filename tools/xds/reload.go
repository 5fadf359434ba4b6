package xds

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cellserver is a [Server] by RL.POLICY RELOAD. The user needs the permission for it.
type Cellserver struct{ Client *redis.Client }

// notYet is the time between two attempts to reach a server that does not answer.
const notYet = 200 * time.Millisecond

// Reload implements [Server].
func (s Cellserver) Reload(ctx context.Context) error {
	for {
		err := s.Client.Do(ctx, "RL.POLICY", "RELOAD").Err()
		var answer redis.Error
		if err == nil || errors.As(err, &answer) && !strings.HasPrefix(answer.Error(), "LOADING") {
			return err //nolint:wrapcheck // the words of the server
		}
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // as the interface says
		case <-time.After(notYet):
		}
	}
}
