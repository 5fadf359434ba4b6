package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/examples/demo"
)

// policy is the policy of the demonstration, and mallory its key that is blocked.
const (
	policy  = "demo"
	mallory = "mallory"
)

// blockTime is the maximum time in which a block reaches all servers.
const blockTime = 10 * time.Second

// showBlock sets a policy and blocks a key at the first of servers. It prints how long it takes until each of the
// others denies that key.
func (d *cluster) showBlock(ctx context.Context, servers []string) error {
	ctx, end := context.WithTimeout(ctx, blockTime)
	defer end()
	clients := make([]*redis.Client, len(servers))
	for i, addr := range servers {
		clients[i] = demo.Client(addr)
		defer clients[i].Close() //nolint:errcheck // an error of Close does not matter
	}
	for { // the node that has the policies may be the one that was killed
		err := clients[0].Do(ctx, "RL.POLICY", "SET", policy, "LIMITS", "TB", 1_000_000, 1_000_000, 1).Err()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	for _, c := range clients {
		if _, err := until(ctx, c, true); err != nil {
			return err
		}
	}
	fmt.Fprintf(d.w, "\nRL.BLOCK %s %s at server 1\n", policy, mallory)
	began := time.Now()
	if err := clients[0].Do(ctx, "RL.BLOCK", policy, mallory, "EX", 60, "REASON", "demonstration").Err(); err != nil {
		return err
	}
	type denial struct {
		after time.Duration
		err   error
	}
	denials := make([]chan denial, len(clients))
	for i, c := range clients {
		denials[i] = make(chan denial, 1)
		go func() {
			at, err := until(ctx, c, false)
			denials[i] <- denial{at.Sub(began), err}
		}()
	}
	for i := range denials {
		is := <-denials[i]
		if is.err != nil {
			return is.err
		}
		fmt.Fprintf(d.w, "  server %d denies the key after %d ms\n", i+1, is.after.Milliseconds())
	}
	return nil
}

// until calls RL.USE for the key mallory until the server of c admits it, or denies it if admitted is false. It returns the
// time of that reply.
func until(ctx context.Context, c *redis.Client, admitted bool) (time.Time, error) {
	for {
		numbers, err := c.Do(ctx, "RL.USE", policy, mallory).Int64Slice()
		switch {
		case err == nil && len(numbers) > 0 && (numbers[0] == 0) == admitted:
			return time.Now(), nil
		case ctx.Err() != nil:
			return time.Time{}, errors.Join(ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}
