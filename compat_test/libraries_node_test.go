//go:build real

package compat_test

// nodeLibrary is a program of the folder node, where npm has installed its library.
func nodeLibrary(name, version string, checks int, what string, command ...string) library {
	return library{
		name: name, version: version, language: "Node.js", dir: "node",
		command: append([]string{"node"}, command...), checks: checks,
		installed: "node_modules/.installed", inputs: []string{"package.json", "package-lock.json"},
		what: what,
	}
}

func nodeLibraries() []library {
	const (
		flexible   = "RateLimiterRedis, penalty, reward, block, set, union, burst, queue, insurance; two processes."
		express    = "As the store of express-rate-limit 8.7.4 in an Express 5.3.0 server, with requests over HTTP; two processes."
		bottleneck = "Clustering: reservoirs, maxConcurrent, minTime, weights, groups, messages; two processes."
		rolling    = "Its sorted set in a transaction, the least time between calls, what it tells, clear; two processes."
		own        = "Own tests with this data store. Those that depend on an error's first word are left out, since Redis 7 puts ERR there."
	)
	return []library{
		nodeLibrary("rate-limiter-flexible (ioredis)", "11.4.0", 11, flexible, "rate-limiter-flexible.js", "ioredis"),
		nodeLibrary("rate-limiter-flexible (node-redis)", "11.4.0", 11, flexible, "rate-limiter-flexible.js", "redis"),
		nodeLibrary("rate-limit-redis (ioredis)", "6.0.1", 8, express, "express.js", "ioredis"),
		nodeLibrary("rate-limit-redis (node-redis)", "6.0.1", 8, express, "express.js", "redis"),
		nodeLibrary("@fastify/rate-limit", "11.2.0", 16, "Own tests of its Redis store, over ioredis 6.0.0.", "fastify.js"),
		nodeLibrary("@upstash/ratelimit", "2.2.0", 11,
			"fixedWindow, slidingWindow and tokenBucket over a redis object made from ioredis, since the package's client speaks HTTP. "+
				"The object removes the first line of the scripts, a flag of the service: Redis 7 refuses it too.", "upstash.js"),
		nodeLibrary("bottleneck (ioredis)", "2.19.5", 10, bottleneck, "bottleneck.js", "ioredis"),
		nodeLibrary("bottleneck (node-redis 3)", "2.19.5", 10, bottleneck, "bottleneck.js", "redis"),
		nodeLibrary("bottleneck, own tests (ioredis)", "2.19.5", 110, own+" 110 of 119 tests, without three for Redis Cluster.", "bottleneck-own.js", "ioredis"),
		nodeLibrary("bottleneck, own tests (node-redis 3)", "2.19.5", 111, own+" 111 of 117 tests.", "bottleneck-own.js", "redis"),
		nodeLibrary("async-ratelimiter", "1.6.10", 8, "Its sorted-set log, peeks, limits of a call; two processes.", "async-ratelimiter.js"),
		nodeLibrary("rolling-rate-limiter (ioredis)", "0.4.2", 9, rolling, "rolling-rate-limiter.js", "ioredis"),
		nodeLibrary("rolling-rate-limiter (node-redis)", "0.4.2", 9, rolling, "rolling-rate-limiter.js", "redis"),
		nodeLibrary("redis-semaphore", "5.8.0", 9, "Mutex, Semaphore, MultiSemaphore and RedlockMutex: waiting, prolonging, losing a lock; two processes.", "redis-semaphore.js"),
		nodeLibrary("ioredis", "6.0.0", 11,
			"`defineCommand` with the sorted-set log and the hash token bucket, NOSCRIPT, MULTI, WATCH, pipelines, publish and subscribe; two processes.", "ioredis.js"),
		nodeLibrary("node-redis", "6.3.1", 8, "`defineScript`, NOSCRIPT, MULTI, WATCH, publish and subscribe; two processes.", "redis.js"),
	}
}

var nodeOmissions = []omission{
	{"BullMQ 6.7.0 (its limiter)", "A queue whose scripts keep events in streams, which cellserver lacks."},
	{"limitd-redis 8.6.0, own tests", "Not in its package, and at its end. Run by hand: 206 of 208, as on Redis 7; the other two use an address that Node refuses as a URL."},
	{"redis-semaphore 5.7.0, own tests", "Not in its package, and they start and stop servers by Docker. Run by hand with programs that do the same: 170 of 170, as on Redis 7."},
}
