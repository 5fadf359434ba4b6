//go:build real

package compat_test

// Where the same check is in several languages, what it does is the same.
const (
	scriptedUse = "An INCR and PEXPIRE limiter in Lua, pipelines, MULTI and WATCH, publish and subscribe, errors, `CL.THROTTLE`; "
	symfonyUse  = "Fixed and sliding window and token bucket in the cache behind Symfony's lock, reservations, reset; four processes."
)

// otherLibraries are those in languages with a few of them each.
func otherLibraries() []library {
	rust := library{language: "Rust", dir: "rust", installed: "target/.installed", inputs: []string{"Cargo.toml", "Cargo.lock", "src"}}
	ruby := library{language: "Ruby", dir: "ruby", command: []string{"ruby"}, installed: "target/.installed"}
	php := library{language: "PHP", dir: "php", command: []string{"php"}, installed: "target/.installed"}
	c := library{language: "C", dir: "c", installed: "target/.installed", inputs: []string{"hiredis.c"}}
	return []library{
		rust.with("redis", "1.8.1", 12, scriptedUse+"threads, and tasks on one async connection.", "./target/debug/redis-rs", "2"),
		rust.with("redis, RESP3", "1.8.1", 12, "The same over RESP3.", "./target/debug/redis-rs", "3"),
		rust.with("redis-cell-rs", "0.3.0", 6, "`CL.THROTTLE` through its types: limit, waits, quantity, keys, DEL; threads.", "./target/debug/redis-cell-rs"),
		rust.with("tower-redis-cell", "0.3.0", 5, "The Tower layer: limit, handlers, errors, opening again; tasks on four connections.", "./target/debug/redis-cell-rs", "tower"),
		ruby.with("redis-rb", "4.8.0", 11, scriptedUse+"threads and processes.", "redis-rb.rb"),
		ruby.with("rack-attack", "6.6.1", 7, "Throttles, Fail2Ban, Allow2Ban, reset, a server that is away; four processes.", "rack-attack.rb"),
		php.with("phpredis", "5.3.7", 11, scriptedUse+"four processes.", "phpredis.php"),
		php.with("Predis", "1.1.10", 10, scriptedUse+"four processes.", "predis.php"),
		php.with("symfony/rate-limiter on phpredis", "5.4", 9, symfonyUse, "symfony.php", "phpredis"),
		php.with("symfony/rate-limiter on Predis", "5.4", 9, symfonyUse, "symfony.php", "predis"),
		c.with("hiredis", "0.14.1", 10, scriptedUse+"threads, and callbacks on one connection.", "./target/hiredis"),
	}
}

// with returns the library of l's language that one program drives: words are what
// follows l's command.
func (l library) with(name, version string, checks int, what string, words ...string) library {
	l.name, l.version, l.checks, l.what = name, version, checks, what
	l.command = append(l.command[:len(l.command):len(l.command)], words...)
	return l
}

var otherOmissions = []omission{
	{"StackExchange.Redis and other .NET libraries", "Neither Debian nor the registries that the tests install from have .NET."},
	{"prorate 0.7.1 (Ruby), own tests", "Not in its package, and Debian has none. Run by hand at 2534b04: 53 of 53, as on Redis 7."},
}
