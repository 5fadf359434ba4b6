package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cellserver/cellserver/rls/messages"
)

// caller makes one call. One goroutine at a time uses it.
type caller func(ctx context.Context) error

// load is a kind of call. open returns the callers, and a function that ends their connections.
type load struct {
	open func(s *server, callers int) (all []caller, close func() error, err error)
}

// values is the number of values of a descriptor from which the load chooses.
const values = 1000

// requestJSON is a request in JSON with descriptors of one entry each, about a random value.
func requestJSON(descriptors int) string {
	var list []string
	for _, key := range keys[:descriptors] {
		list = append(list, fmt.Sprintf(`{"entries":[{"key":%q,"value":"v%d"}]}`, key, rand.N(values)))
	}
	return fmt.Sprintf(`{"domain":%q,"descriptors":[%s]}`, domain, strings.Join(list, ","))
}

// connections is the number of connections that the callers of gRPC share. Envoy has one for each of its threads.
const connections = 2

// overGRPC returns the load of calls of ShouldRateLimit with the given number of descriptors.
func overGRPC(descriptors int) load {
	return load{func(s *server, callers int) (all []caller, closeAll func() error, err error) {
		requests := make([][]byte, values)
		for i := range requests {
			if requests[i], err = messages.AppendRequest(nil, []byte(requestJSON(descriptors))); err != nil {
				return nil, nil, err
			}
		}
		var shared []*grpc.ClientConn
		closeAll = func() (err error) {
			for _, c := range shared {
				err = errors.Join(err, c.Close())
			}
			return err
		}
		for range min(connections, callers) {
			c, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})))
			if err != nil {
				return nil, nil, errors.Join(err, closeAll())
			}
			shared = append(shared, c)
		}
		for i := range callers {
			c, out := shared[i%len(shared)], &message{}
			all = append(all, func(ctx context.Context) error {
				return c.Invoke(ctx, method, &message{bytes: requests[rand.N(values)]}, out)
			})
		}
		return all, closeAll, nil
	}}
}

// overHTTP returns the load of requests of HTTP/1.1. Each caller has its own connection.
func overHTTP(verb string, path, body func() string) load {
	return load{func(s *server, callers int) (all []caller, closeAll func() error, err error) {
		transport := &http.Transport{MaxIdleConnsPerHost: callers, MaxConnsPerHost: callers}
		for range callers {
			all = append(all, func(ctx context.Context) error {
				r, err := http.NewRequestWithContext(ctx, verb, "http://"+s.http+path(), strings.NewReader(body()))
				if err != nil {
					return err
				}
				r.Header.Set("Content-Type", "application/json")
				answer, err := transport.RoundTrip(r)
				if err != nil {
					return err
				}
				var text bytes.Buffer
				_, err = io.Copy(&text, answer.Body)
				if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
					err = fmt.Errorf("%s: %s", answer.Status, text.Bytes())
				}
				return err
			})
		}
		return all, func() error { transport.CloseIdleConnections(); return nil }, nil
	}}
}

// These are the calls of http-port. The policy belongs to the first rule.
var (
	policy = "rls." + domain + "." + keys[0]

	postJSON = overHTTP(http.MethodPost, always("/json"), func() string { return requestJSON(1) })
	use      = overHTTP(http.MethodPost, always("/v1/use"), func() string {
		return `{"policy":"` + policy + `","key":"v` + strconv.Itoa(rand.N(values)) + `"}`
	})
	check = overHTTP(http.MethodGet, func() string { return "/v1/check/" + policy + "/key=v" + strconv.Itoa(rand.N(values)) }, always(""))
)

func always(text string) func() string { return func() string { return text } }

// figures are the results of one turn.
type figures struct {
	perSecond float64 // number of calls per second
	cpu       float64 // processor time of the server per call, in microseconds
	mallocs   float64 // number of allocations of the server per call
}

func (f figures) String() string {
	return fmt.Sprintf("%.0f calls/s, %.1f us, %.1f allocations", f.perSecond, f.cpu, f.mallocs)
}

// turn makes calls of one kind to s, and returns the figures of the time that counts.
func (l load) turn(ctx context.Context, s *server, callers int, o *options) (f figures, err error) {
	all, closeAll, err := l.open(s, callers)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	var calls atomic.Int64
	var ended atomic.Bool
	var running sync.WaitGroup
	failed := make(chan error, callers)
	for _, call := range all {
		running.Go(func() {
			for !ended.Load() {
				if err := call(ctx); err != nil {
					failed <- err
					return
				}
				calls.Add(1)
			}
		})
	}
	wait := func(d time.Duration) error {
		select {
		case err := <-failed:
			return err
		case <-time.After(d):
			return ctx.Err()
		}
	}
	defer func() {
		ended.Store(true)
		running.Wait()
	}()
	if err := wait(o.warmup); err != nil {
		return f, err
	}
	before, err := s.look(ctx, false)
	counted := calls.Load()
	if err != nil {
		return f, err
	}
	for d := o.span; ; d = time.Millisecond { // on a very busy machine, the wait is longer, until there is a figure
		if err := wait(d); err != nil {
			return f, err
		}
		if calls.Load() > counted {
			break
		}
	}
	n := float64(calls.Load() - counted)
	after, err := s.look(ctx, true)
	if err != nil {
		return f, err
	}
	return figures{
		perSecond: n / after.at.Sub(before.at).Seconds(),
		cpu:       float64(after.cpu-before.cpu) / float64(time.Microsecond) / n,
		mallocs:   float64(after.mallocs-before.mallocs) / n,
	}, nil
}
