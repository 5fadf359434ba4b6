//go:build real

package compat_test

import "path/filepath"

// pythonLibraries are the programs of libraries/python, whose install.sh puts all libraries into
// one environment.
func pythonLibraries() []library {
	const huge = "it stores a million entries under one key, more than `collection-max-elements` allows by default; " +
		"with the option raised, its script takes about the two seconds that the test gives"
	suite := pythonLibrary("limits, own tests", "5.8.0", 30, "Own tests, except those it marks as flaky",
		"limits_suite.py", "sync")
	suite.known = map[string]string{"test_strategy/TestMovingWindow/test_moving_window_huge_cost[redis_basic]": huge}
	async := pythonLibrary("limits, own asynchronous tests", "5.8.0", 25, "Own tests, likewise, over redis-py and coredis 5.7",
		"limits_suite.py", "asyncio")
	async.known = map[string]string{"aio/test_strategy/TestAsyncMovingWindow/test_moving_window_huge_cost[redis]": huge}
	return []library{
		suite,
		async,
		pythonLibrary("limits", "5.8.0", 14, "Fixed, moving and sliding window, also asynchronous", "use_limits.py"),
		pythonLibrary("pyrate-limiter", "4.5.1", 11, "RedisBucket, also asynchronous", "use_pyrate.py"),
		pythonLibrary("Flask-Limiter", "4.1.1", 11, "Flask 3.1 applications, three strategies", "use_flask_limiter.py"),
		pythonLibrary("slowapi", "0.1.10", 6, "A Starlette application", "use_slowapi.py"),
		pythonLibrary("throttled-py", "3.5.0", 12, "Its five algorithms, also asynchronous", "use_throttled.py"),
		pythonLibrary("redis-py, pipeline", "8.1.0", 9, "INCR and EXPIRE, a sorted set, WATCH, in transactions", "use_redis_pipeline.py"),
		pythonLibrary("redis-py, register_script", "8.1.0", 10,
			"Window, log and token bucket in Lua, and the script that passes CL.THROTTLE on", "use_redis_scripts.py"),
		pythonLibrary("redis-py, Lock", "8.1.0", 7, "Holding, waiting, extending, losing a lock", "use_redis_lock.py"),
		pythonLibrary("self-limiters", "0.4.0", 7, "Its semaphore, which waits with BLPOP, and its token bucket", "use_self_limiters.py"),
		pythonLibrary("redis-rate-limiters", "0.5.0", 9,
			"Its semaphore, which waits with BLPOP, and its token bucket, also asynchronous", "use_redis_rate_limiters.py"),
		pythonLibrary("dramatiq, rate limits", "2.2.1", 9,
			"Its barrier, which waits with BRPOPLPUSH, and its concurrent, bucket and window limiters", "use_dramatiq.py"),
	}
}

func pythonLibrary(name, version string, checks int, what string, program ...string) library {
	return library{
		name: name, version: version, language: "Python", dir: "python",
		command:   append([]string{filepath.Join(".venv", "bin", "python")}, program...),
		programs:  []string{"python3"},
		checks:    checks,
		installed: filepath.Join(".venv", ".installed"),
		inputs:    []string{"install.sh", "requirements.txt", "requirements-sdist.txt"},
		what:      what,
	}
}

var pythonOmissions = []omission{
	{"django-smart-ratelimit 4.12.1, own tests", "Not in its package, and most of them need no server. Run by hand at 0dc26c2: 1,774 pass and none fails, as on Redis 7; 229 skip themselves."},
}
