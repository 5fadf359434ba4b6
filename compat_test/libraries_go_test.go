//go:build real

package compat_test

import "path/filepath"

// goLibrary is a program that libraries/go/install.sh compiles.
func goLibrary(name, version, program string, checks int, what string) library {
	return library{
		name: name, version: version, language: "Go", dir: "go", checks: checks, what: what,
		command:   []string{"." + string(filepath.Separator) + filepath.Join("target", program)},
		installed: filepath.Join("target", ".installed"),
		inputs:    []string{"go.mod", "go.sum", "checks", program},
	}
}

func goLibraries() []library {
	return []library{
		goLibrary("go-redis/redis_rate", "v10.0.1", "redisrate", 12, "Allow, AllowN, AllowAtMost, Reset, over a client and a ring."),
		goLibrary("ulule/limiter", "v3.11.2", "ulule", 11, "The Redis store, and its own tests."),
		goLibrary("throttled", "v2.15.0", "throttled", 9, "GCRA over both Redis stores."),
		goLibrary("sethvargo/go-redisstore", "v0.3.0", "redisstore", 9, "Take, Set, Burst, and its own test."),
		goLibrary("mennanov/limiters", "v1.11.0", "limiters", 12, "Token and leaky bucket with the Redis lock, fixed and sliding window, concurrent buffer."),
		goLibrary("go-chi/httprate-redis", "v0.5.0", "httprate", 9, "The middleware, with and without its fallback."),
		goLibrary("bsm/redislock", "v0.9.4", "redislock", 8, "Obtain, Refresh, Release, retries, mutual exclusion."),
		goLibrary("go-redsync/redsync", "v4.18.1", "redsync", 8, "One server, over go-redis and redigo."),
		goLibrary("RussellLuo/slidingwindow", "v0.0.0-20200528002341-535bb99d338b", "slidingwindow", 10,
			"A data store over go-redis; two processes share a limit (see [migrating/go.md](migrating/go.md))."),
		goLibrary("envoyproxy/ratelimit's sequence", "v4.1.4", "envoy", 9, "INCRBY and EXPIRE, and GET before, in pipelines of radix, whose version this is."),
		goLibrary("go-redis", "v9.23.0", "goredis", 10, "Script.Run, TxPipelined, Watch, Subscribe, PSubscribe."),
	}
}

var goOmissions = []omission{
	{"go-redis/redis_rate's own tests", "They always connect to port 6379. A program of ours runs the library instead."},
	{"throttled's own tests", "They always connect to port 6379. A program of ours runs the library instead."},
	{"envoyproxy/ratelimit as a service", "Not built by the tests, since it needs an xDS and telemetry stack: a program sends the same commands with its client. Run by hand at f2fb157, its own tests of the service with Redis pass, 8 tests with 25 parts, as on Redis."},
}
