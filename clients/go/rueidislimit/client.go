// Package rueidislimit lets limiters ask by a client of github.com/redis/rueidis.
//
// rueidis puts the calls of all goroutines into one pipeline, which takes less time of the processor for each than the pool of
// go-redis. The package is a module of its own, so that other programs do not get rueidis.
package rueidislimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// New returns a client for limit.Options.Client. c is not closed by the limiter. rueidis does not send a command of a limiter again, and
// connects when it is made: rueidis.NewClient has an error if the server is away.
func New(c rueidis.Client) limit.Client { return client{c} }

type client struct{ rueidis.Client }

// Do sends a command.
func (c client) Do(ctx context.Context, words []string) (any, error) {
	reply, err := c.Client.Do(ctx, c.B().Arbitrary(words...).Build()).ToAny()
	if err == nil {
		return generic(reply), nil
	}
	var refused *rueidis.RedisError
	switch {
	case rueidis.IsRedisNil(err):
		return nil, nil
	case errors.As(err, &refused):
		return nil, limit.ReplyError(refused.Error())
	}
	return nil, fmt.Errorf("calling the server: %w", err)
}

// generic returns a reply with its maps as a limit.Client has them.
func generic(reply any) any {
	named, ok := reply.(map[string]any)
	if !ok {
		return reply
	}
	m := make(map[any]any, len(named))
	for name, value := range named {
		m[name] = value
	}
	return m
}
