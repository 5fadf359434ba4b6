// Command goredis runs the checks of clients with go-redis.
package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/compat_test/clients/go/checks"
)

type adapter struct{ client *redis.Client }

func main() {
	options := &redis.Options{Addr: checks.Addr()}
	if checks.Protocol() != "" {
		version, err := strconv.Atoi(checks.Protocol())
		if err != nil {
			checks.Fail(err)
		}
		options.Protocol = version
	}
	checks.Run("github.com/redis/go-redis/v9", adapter{redis.NewClient(options)})
}

// reply returns the reply to cmd as users of the library read it: an array as integers.
func reply(cmd *redis.Cmd) (any, error) {
	got, err := cmd.Result()
	if err != nil {
		return nil, err
	}
	if _, array := got.([]any); array {
		return cmd.Int64Slice()
	}
	return got, nil
}

func (a adapter) Call(args ...string) (any, error) {
	return reply(a.client.Do(context.Background(), boxed(args)...))
}

func (a adapter) Pipeline(commands [][]string) ([]any, error) {
	ctx := context.Background()
	pipe := a.client.Pipeline()
	sent := make([]*redis.Cmd, len(commands))
	for i, args := range commands {
		sent[i] = pipe.Do(ctx, boxed(args)...)
	}
	// Exec returns the first error reply. The command of that reply returns it, too.
	if _, err := pipe.Exec(ctx); err != nil && !a.IsReplyError(err) {
		return nil, err
	}
	replies := make([]any, len(sent))
	for i, cmd := range sent {
		got, err := reply(cmd)
		replies[i] = got
		if err != nil {
			replies[i] = err
		}
	}
	return replies, nil
}

func (a adapter) IsReplyError(err error) bool {
	var refusal redis.Error
	return errors.As(err, &refusal)
}

func boxed(args []string) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg
	}
	return values
}
