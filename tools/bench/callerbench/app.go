package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/rueidislimit"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// perHour is the limit of all contenders. No load reaches it.
const perHour = 1_000_000_000

// policy is the policy of the server.
const policy = "api"

// keyOf is the header field that has the key of a request.
const keyOf = "X-User"

// middleware puts a limiter around a handler.
type middleware = func(http.Handler) http.Handler

// contender is a way to limit the requests of an application.
type contender struct {
	name string
	// redis says that it asks redis-server.
	redis bool
	limit func(address string) (middleware, error)
}

// These are the names of contenders that others are compared with.
const (
	none      = "no limiter"
	goRedis   = "clients/go"
	overQueue = "clients/go over rueidis"
)

var contenders = []contender{
	{none, false, func(string) (middleware, error) { return func(h http.Handler) http.Handler { return h }, nil }},
	{"go-redis and RL.USE", false, plainGoRedis},
	{goRedis, false, func(address string) (middleware, error) { return limited(limit.Options{URL: "redis://" + address}) }},
	{"rueidis and RL.USE", false, plainRueidis},
	{overQueue, false, func(address string) (middleware, error) {
		c, err := dialRueidis(address)
		if err != nil {
			return nil, err
		}
		return limited(limit.Options{Client: rueidislimit.New(c)})
	}},
	{"redis_rate", true, redisRate},
	{"httprate-redis", true, httprateRedis},
}

// limited returns the middleware of clients/go.
func limited(o limit.Options) (middleware, error) {
	o.Policy, o.OnUnavailable, o.Deadline = policy, limit.Deny, limit.MaxDeadline
	l, err := limit.New(context.Background(), o)
	if err != nil {
		return nil, err
	}
	return httplimit.Middleware(l, httplimit.Header(keyOf, false)), nil
}

// asked returns middleware that has no more than a call and the status.
func asked(allow func(r *http.Request) (bool, error)) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			allowed, err := allow(r)
			switch {
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			case !allowed:
				http.Error(w, "too many requests", http.StatusTooManyRequests)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

func plainGoRedis(address string) (middleware, error) {
	c := redis.NewClient(&redis.Options{Addr: address})
	return asked(func(r *http.Request) (bool, error) {
		five, err := c.Do(r.Context(), "RL.USE", policy, r.Header.Get(keyOf), 1, "MS").Int64Slice()
		return err == nil && five[0] == 0, err
	}), nil
}

func plainRueidis(address string) (middleware, error) {
	c, err := dialRueidis(address)
	if err != nil {
		return nil, err
	}
	return asked(func(r *http.Request) (bool, error) {
		five, err := c.Do(r.Context(), c.B().Arbitrary("RL.USE", policy, r.Header.Get(keyOf), "1", "MS").Build()).AsIntSlice()
		return err == nil && five[0] == 0, err
	}), nil
}

func dialRueidis(address string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true, DisableCache: true})
}

func redisRate(address string) (middleware, error) {
	l := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: address}))
	return asked(func(r *http.Request) (bool, error) {
		res, err := l.Allow(r.Context(), r.Header.Get(keyOf), redis_rate.PerHour(perHour))
		return err == nil && res.Allowed > 0, err
	}), nil
}

func httprateRedis(address string) (middleware, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	key := func(r *http.Request) (string, error) { return r.Header.Get(keyOf), nil }
	counter := httprateredis.WithRedisLimitCounter(&httprateredis.Config{Host: host, Port: uint16(number), FallbackDisabled: true})
	return httprate.Limit(perHour, time.Hour, httprate.WithKeyFuncs(key), counter), nil
}

// used is what the process of an application has used so far.
type used struct {
	CPU     time.Duration
	Mallocs uint64
}

// serve is the application with the contender of the name: it says hello until the process is killed.
func serve(args []string) error {
	set := flag.NewFlagSet("callerbench serve", flag.ContinueOnError)
	name := set.String("contender", none, "the name of a contender")
	address := set.String("limits", "", "the address of the server that it asks")
	listen := set.String("listen", "", "the address of the application")
	if err := set.Parse(args); err != nil {
		return err
	}
	for _, c := range contenders {
		if c.name != *name {
			continue
		}
		limit, err := c.limit(*address)
		if err != nil {
			return err
		}
		http.Handle("/", limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })))
		http.HandleFunc("/used", tell)
		return http.ListenAndServe(*listen, nil) //nolint:gosec // a client without an end is the load's
	}
	return fmt.Errorf("there is no contender %q", *name)
}

// tell answers with what the process has used.
func tell(w http.ResponseWriter, _ *http.Request) {
	u, err := process.Of(os.Getpid())
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if err = errors.Join(err, json.NewEncoder(w).Encode(used{u.CPU, memory.Mallocs})); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
