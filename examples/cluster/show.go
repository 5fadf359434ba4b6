package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/examples/demo"
)

// counts has the numbers of calls that one server has admitted, has denied, and has answered with
// an error or not at all.
type counts struct{ admitted, denied, failed atomic.Int64 }

// show calls all servers, kills a master after d.kill seconds, and prints a line each second.
func (d *cluster) show(ctx context.Context, h *house, nodes, servers []string) error {
	ctx, end := context.WithCancel(ctx)
	all := make([]counts, len(servers))
	var work sync.WaitGroup
	for i, addr := range servers {
		work.Go(func() { all[i].call(ctx, addr) })
	}
	defer work.Wait()
	defer end()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	fmt.Fprintln(d.w, "second  admitted by 1, 2, 3  together  denied  no decision")
	before := make([][3]int64, len(all))
	total := int64(0)
	for second := 1; second <= d.seconds; second++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		var sum [3]int64
		var each []string
		for i := range all {
			now := [3]int64{all[i].admitted.Load(), all[i].denied.Load(), all[i].failed.Load()}
			for k := range sum {
				sum[k] += now[k] - before[i][k]
			}
			each = append(each, fmt.Sprintf("%4d", now[0]-before[i][0]))
			before[i] = now
		}
		total += sum[0]
		fmt.Fprintf(d.w, "%6d  %19s  %8d  %6d  %11d\n", second, strings.Join(each, " "), sum[0], sum[1], sum[2])
		if second == d.kill {
			if err := d.killOwner(ctx, h, nodes); err != nil {
				return err
			}
		}
	}
	took := time.Since(began)
	fmt.Fprintf(d.w, "\n%d admitted in %.1f s. The limit allows %d + %d x %.1f = %.0f.\n", total, took.Seconds(),
		burst, perSecond, took.Seconds(), burst+perSecond*took.Seconds())
	return nil
}

// killOwner kills the node that has the limit, and returns when the node has ended.
func (d *cluster) killOwner(ctx context.Context, h *house, nodes []string) error {
	c := demo.Client(nodes[0])
	defer c.Close() //nolint:errcheck // an error of Close does not matter
	slot, err := c.ClusterKeySlot(ctx, "cs:"+key).Result()
	if err != nil {
		return err
	}
	rows, err := c.Do(ctx, "CLUSTER", "SLOTS").Slice()
	if err != nil {
		return err
	}
	for _, row := range rows {
		r := row.([]any)
		if r[0].(int64) <= slot && slot <= r[1].(int64) {
			master := r[2].([]any)
			addr := net.JoinHostPort(master[0].(string), fmt.Sprint(master[1]))
			fmt.Fprintf(d.w, "        kill -9 of the master that has the limit, %s: a replica takes over\n", addr)
			return h.Kill(addr)
		}
	}
	return errors.New("no node has the limit")
}

// call calls the server at addr repeatedly, five calls at a time, until ctx ends.
func (c *counts) call(ctx context.Context, addr string) {
	client := demo.Client(addr)
	defer client.Close() //nolint:errcheck // an error of Close does not matter
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		replies, _ := client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
			for range 5 {
				p.Do(ctx, command()...)
			}
			return nil
		})
		for _, reply := range replies {
			numbers, err := reply.(*redis.Cmd).Int64Slice()
			switch {
			case err != nil || len(numbers) == 0:
				c.failed.Add(1)
			case numbers[0] == 0:
				c.admitted.Add(1)
			default:
				c.denied.Add(1)
			}
		}
	}
}
