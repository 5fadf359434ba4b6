package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/internal/freeport"
)

// load is the load of redis-benchmark: the number of keys, and whether the limit admits all calls.
type load struct {
	keys  int
	admit bool
}

// trial is the number of commands of the first run, which finds the rate. The measured run has as
// many commands as take the span at this rate.
const trial = 20_000

// server starts a cellserver that uses the nodes as its store, sends the load to it, and returns
// the figures.
func (l load) server(ctx context.Context, b *bench) (f figures, err error) {
	if err := b.nodes.flush(ctx); err != nil {
		return f, err
	}
	port := freeport.Choose()
	cmd := exec.CommandContext(ctx, b.options.server, "--port", port, "--bind", "127.0.0.1", "--store", b.nodes.url(),
		"--store-timeout", "1000", "--loglevel", "warning") // redis-benchmark stops at the first error, so the time-out is a second
	if err := cmd.Start(); err != nil {
		return f, err
	}
	defer func() {
		_ = cmd.Process.Kill() // the process stores nothing, so it can be killed
		_ = cmd.Wait()         // the error only says that the process was killed
	}()
	command := []string{"CL.THROTTLE", "key:__rand_int__", "1000000", "1000000", "1"}
	if !l.admit {
		command = []string{"CL.THROTTLE", "key:__rand_int__", "0", "1", "86400"}
	}
	if err := until(ctx, func() error { return answers(ctx, port, command) }); err != nil {
		return f, err
	}
	return b.pipelined(ctx, []int{cmd.Process.Pid}, append([]string{"-p", port, "-r", strconv.Itoa(l.keys)}, command...))
}

// answers returns an error if the server does not reply to a command with an array.
func answers(ctx context.Context, port string, command []string) error {
	client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", port), MaxRetries: -1})
	var words []any
	for _, w := range command {
		words = append(words, w)
	}
	_, err := client.Do(ctx, words...).Slice()
	return errors.Join(err, client.Close())
}

// script sends the load to the nodes, with the script of redis_rate, and returns the figures.
func (l load) script(ctx context.Context, b *bench) (f figures, err error) {
	if err := b.nodes.flush(ctx); err != nil {
		return f, err
	}
	sha, err := b.nodes.loadScript(ctx)
	if err != nil {
		return f, err
	}
	// redis-benchmark replaces {tag} with a tag of each node, so that it sends to all nodes.
	port, where, key := b.nodes.ports[0], []string{"--cluster"}, "rate:{tag}:__rand_int__"
	if l.keys == 1 {
		where, key = nil, "rate:hot"
		if port, err = b.nodes.owner(ctx, key); err != nil {
			return f, err
		}
	}
	args := append(where, "-p", port, "-r", strconv.Itoa(max(l.keys/masters, 1)), "EVALSHA", sha, "1", key)
	if l.admit {
		args = append(args, "1000000", "1000000", "1", "1")
	} else {
		args = append(args, "1", "1", "86400", "1")
	}
	return b.pipelined(ctx, nil, args)
}

// sentScript is a hook that records the text of the script that a client sends.
type sentScript struct{ text string }

func (s *sentScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *sentScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 && cmd.Name() == "eval" {
			s.text, _ = args[1].(string)
		}
		return next(ctx, cmd)
	}
}

// loadScript makes the library do a call, and loads the script that it sends on all nodes.
func (n *nodes) loadScript(ctx context.Context) (sha string, err error) {
	sent := &sentScript{}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: n.addresses()})
	client.AddHook(sent)
	for _, c := range n.clients {
		err = errors.Join(err, c.ScriptFlush(ctx).Err()) // the client must send the text of the script, so the server forgets it
	}
	_, failed := redis_rate.NewLimiter(client).Allow(ctx, "once", redis_rate.PerSecond(1))
	if err = errors.Join(err, failed, client.Close()); err != nil {
		return "", err
	}
	for _, c := range n.clients {
		if sha, err = c.ScriptLoad(ctx, sent.text).Result(); err != nil {
			return "", err
		}
	}
	return sha, nil
}

// pipelined runs redis-benchmark twice: first to find the rate, then for the span. own are the
// processes whose processor time is measured in addition to the processor time of the nodes.
func (b *bench) pipelined(ctx context.Context, own []int, args []string) (f figures, err error) {
	rate, _, err := redisBenchmark(ctx, trial, args)
	if err != nil {
		return f, err
	}
	count := max(trial, int64(rate*b.span.Seconds()))
	engine, err := b.nodes.cpu()
	if err != nil {
		return f, err
	}
	mine, err := cpuOf(own...)
	if err != nil {
		return f, err
	}
	if f.PerSecond, f.P99, err = redisBenchmark(ctx, count, args); err != nil {
		return f, err
	}
	engineAfter, err := b.nodes.cpu()
	if err != nil {
		return f, err
	}
	mineAfter, err := cpuOf(own...)
	f.Engine, f.Own = each(engineAfter-engine, count), each(mineAfter-mine, count)
	return f, err
}

// redisBenchmark sends count commands with 24 connections and 32 commands in flight on each. It
// returns the rate and the 99th percentile of the latency.
func redisBenchmark(ctx context.Context, count int64, args []string) (rate float64, p99 time.Duration, err error) {
	all := append([]string{"-P", "32", "-c", "24", "-n", strconv.FormatInt(count, 10), "--csv"}, args...)
	cmd := exec.CommandContext(ctx, "redis-benchmark", all...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || bytes.Contains(append(said.Bytes(), out...), []byte("Error")) {
		return 0, 0, fmt.Errorf("redis-benchmark: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	// redis-benchmark does not escape the command in the CSV line, so the figures are taken from
	// its end.
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields, err := csv.NewReader(strings.NewReader(lines[len(lines)-1])).Read()
	if err != nil || len(fields) < 7 {
		return 0, 0, fmt.Errorf("redis-benchmark printed %q", out)
	}
	fields = fields[len(fields)-7:]
	rate, err = strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0, 0, err
	}
	ms, err := strconv.ParseFloat(fields[5], 64)
	return rate, time.Duration(ms * float64(time.Millisecond)), err
}
