//go:build real

package compat_test

import (
	"os"
	"path/filepath"
	"strings"
)

// javaLibrary is one program of libraries/java. redisson is the folder of the version
// of Redisson that it runs with.
func javaLibrary(name, version string, checks int, what, redisson, class string, args ...string) library {
	classpath := []string{"target/classes", "target/lib/*", "target/" + redisson + "/*"}
	return library{
		name: name, version: version, language: "Java", dir: "java",
		command: append([]string{
			"java", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(classpath, string(os.PathListSeparator)),
			"limiters." + class,
		}, args...),
		checks:    checks,
		installed: filepath.Join("target", ".installed"),
		inputs:    []string{"pom.xml", "src"},
		what:      what,
	}
}

func javaLibraries() []library {
	const (
		redisson = "RRateLimiter (overall, per client), RSemaphore, RPermitExpirableSemaphore, RLock, topics, scripts, batches, SW.ALLOW in a script"
		bucket4j = "its proxy manager: consume, probe, wait, replace and remove a bucket, two managers"
		own      = "Own tests: all tests that it publishes for its back ends, without their container. The asynchronous tests need Lettuce or Redisson"
		scripts  = "token bucket, sliding log and counter as scripts, a CL.THROTTLE pass-through, "
		fallback = "the retry after NOSCRIPT, transactions, "
	)
	return []library{
		javaLibrary("Redisson", "4.7.0", 17, redisson, "redisson-4", "RedissonProgram"),
		javaLibrary("Redisson 3", "3.52.0", 17, redisson, "redisson-3", "RedissonProgram"),
		javaLibrary("Bucket4j over Jedis", "8.17.0", 10, bucket4j, "redisson-4", "Bucket4jProgram", "jedis"),
		javaLibrary("Bucket4j over Lettuce", "8.17.0", 10, bucket4j, "redisson-4", "Bucket4jProgram", "lettuce"),
		javaLibrary("Bucket4j over Redisson", "8.17.0", 10, bucket4j, "redisson-4", "Bucket4jProgram", "redisson"),
		javaLibrary("Bucket4j's own tests over Jedis", "8.17.0", 30, own, "redisson-4", "Bucket4jOwnTests", "jedis"),
		javaLibrary("Bucket4j's own tests over Lettuce", "8.17.0", 30, own, "redisson-4", "Bucket4jOwnTests", "lettuce"),
		javaLibrary("Bucket4j's own tests over Redisson", "8.17.0", 30, own, "redisson-4", "Bucket4jOwnTests", "redisson"),
		javaLibrary("Spring Cloud Gateway", "5.0.3", 11,
			"RedisRateLimiter with the script in its jar: tokens, headers, expiries, what it does on an error; TB.ACQUIRE as its script",
			"redisson-4", "GatewayProgram"),
		javaLibrary("Spring Data Redis", "4.1.0", 13,
			"`RedisTemplate.execute(RedisScript)`, also reactive: "+scripts+fallback+"pipelines, a listener, TB.ACQUIRE",
			"redisson-4", "SpringDataScripts"),
		javaLibrary("Lettuce", "7.7.0.RELEASE", 13,
			"eval and evalsha: "+scripts+fallback+"`@Command` interfaces, pub/sub, TB.ACQUIRE",
			"redisson-4", "LettuceScripts"),
		javaLibrary("Jedis", "7.2.0", 12,
			"Jedis, JedisPooled and RedisClient eval and evalsha: "+scripts+fallback+"WATCH, pipelines, TB.ACQUIRE and CC.ACQUIRE",
			"redisson-4", "JedisScripts"),
	}
}

var javaOmissions = []omission{
	{"Redisson's own tests", "They are not published. The programs above replace them."},
}
