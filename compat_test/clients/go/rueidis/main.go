// Command rueidis runs the checks of clients with rueidis. It is the only client with a builder for
// CL.THROTTLE. By default it turns client tracking on for every connection.
package main

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"github.com/cellserver/cellserver/compat_test/clients/go/checks"
)

type adapter struct{ client rueidis.Client }

func main() {
	options := rueidis.ClientOption{InitAddress: []string{checks.Addr()}}
	if checks.Protocol() == "2" {
		options.AlwaysRESP2 = true
		options.DisableCache = true
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		checks.Fail(err)
	}
	a := adapter{client}
	checks.Run("github.com/redis/rueidis", a, checks.Check{Name: "builder", Run: a.builder})
}

// builder calls CL.THROTTLE with the types of rueidis, once with and once without the optional
// quantity.
func (a adapter) builder() error {
	call := a.client.B().ClThrottle().Key("builder").MaxBurst(15).CountPerPeriod(30).Period(60)
	with := a.client.B().ClThrottle().Key("builder").MaxBurst(15).CountPerPeriod(30).Period(60).Quantity(15)
	first, err := a.client.Do(context.Background(), call.Build()).AsIntSlice()
	rest, restErr := a.client.Do(context.Background(), with.Build()).AsIntSlice()
	if err := errors.Join(err, restErr, checks.Expect(first, checks.Fresh)); err != nil {
		return err
	}
	return checks.Expect(rest[:3], []int64{0, 16, 0})
}

func reply(result rueidis.RedisResult) (any, error) {
	message, err := result.ToMessage()
	switch {
	case err != nil:
		return nil, err
	case message.IsArray():
		return message.AsIntSlice()
	case message.IsInt64():
		return message.ToInt64()
	default:
		return message.ToString()
	}
}

func (a adapter) command(args []string) rueidis.Completed {
	return a.client.B().Arbitrary(args...).Build()
}

func (a adapter) Call(args ...string) (any, error) {
	return reply(a.client.Do(context.Background(), a.command(args)))
}

func (a adapter) Pipeline(commands [][]string) ([]any, error) {
	sent := make(rueidis.Commands, len(commands))
	for i, args := range commands {
		sent[i] = a.command(args)
	}
	replies := make([]any, len(commands))
	for i, result := range a.client.DoMulti(context.Background(), sent...) {
		got, err := reply(result)
		replies[i] = got
		if err != nil {
			replies[i] = err
		}
	}
	return replies, nil
}

func (a adapter) IsReplyError(err error) bool {
	_, refusal := rueidis.IsRedisErr(err)
	return refusal
}
