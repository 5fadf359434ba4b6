package limit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Client sends commands. It must not send a command again on its own, and it must end a call when the call's context
// ends.
type Client interface {
	// Do sends a command and returns its reply: an int64, a string, a []any of these or a map[any]any. An error reply
	// is a [ReplyError], and any other error means that there is no reply.
	Do(ctx context.Context, words []string) (any, error)
}

// ReplyError is an error reply of the server, which begins with a code such as NOPOLICY.
type ReplyError string

// Error returns the text of the reply.
func (e ReplyError) Error() string { return string(e) }

// GoRedis returns a Client of a client of go-redis. The error wraps [ErrOptions] if the client would go on after a deadline or send commands again: it needs
// ContextTimeoutEnabled and MaxRetries -1.
func GoRedis(c redis.UniversalClient) (Client, error) {
	var timeouts bool
	var retries int
	switch c := c.(type) {
	case *redis.Client:
		timeouts, retries = c.Options().ContextTimeoutEnabled, c.Options().MaxRetries
	case *redis.ClusterClient:
		timeouts, retries = c.Options().ContextTimeoutEnabled, c.Options().MaxRetries
	default:
		return nil, wrong("a client of the type %T", c)
	}
	if !timeouts || retries > 0 {
		return nil, wrong("the client needs ContextTimeoutEnabled and MaxRetries -1")
	}
	return &goRedis{c}, nil
}

// once is a command that go-redis must not send again. Without it a ClusterClient does so after a lost connection, as often as
// it follows redirections, whatever its MaxRetries is.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

type goRedis struct{ client redis.UniversalClient }

// Do sends a command and returns its reply: see [Client].
func (g *goRedis) Do(ctx context.Context, words []string) (any, error) {
	args := make([]any, len(words))
	for i := range words {
		args[i] = &words[i] // a string would be copied to the heap
	}
	cmd := once{redis.NewCmd(ctx, args...)}
	_ = g.client.Process(ctx, cmd) // the error is that of the result
	reply, err := cmd.Result()
	var refused redis.Error
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case errors.As(err, &refused):
		return nil, ReplyError(refused.Error())
	}
	return nil, fmt.Errorf("calling the server: %w", err)
}

// dial returns a new client for a URL, and a function that closes it.
func dial(url string, deadline time.Duration) (Client, func() error, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, wrong("URL: %v", err)
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = deadline, deadline, deadline, deadline
	o.MaxRetries, o.DialerRetries = -1, 1 // no retries, because go-redis would also repeat commands that may have been charged
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	return &goRedis{c}, c.Close, nil
}

// faultOf returns the reason why there is no reply.
func faultOf(err error) rules.Fault {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout),
		errors.As(err, &timeout) && timeout.Timeout():
		return rules.Timeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &op) && op.Op == "dial":
		return rules.Refused
	}
	return rules.Broken
}
