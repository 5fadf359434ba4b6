package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/clock"
	"github.com/redis/go-redis/v9"
)

const (
	// sampleEvery is the interval at which a node is asked for its time. That also shows whether
	// the node answers at all.
	sampleEvery = time.Second
	// beats is the number of times per sampleEvery that watch checks whether there is something
	// to do.
	beats = 4
	// firstSamples is the number of samples that are taken at once at the start, so that a single
	// slow answer does not set the clock.
	firstSamples = 3
	// inspectEvery is the interval at which a node is asked for its INFO.
	inspectEvery = time.Minute
)

// watch asks the node for its time until the node is closed. The answer is a sample for c, and
// the probe of an open breaker. Once per inspectEvery it passes the node's INFO to inspect.
func (n *node) watch(prefix string, c *clock.Clock, inspect func(addr, info string)) {
	tick := time.NewTicker(sampleEvery / beats)
	defer tick.Stop()
	inspected := time.Duration(-1)
	for first, beat := firstSamples, 0; ; beat++ {
		// If the breaker is open, it decides when the next probe is sent.
		if n.listed.Load() && (first > 0 || beat%beats == 0 || n.breaker.closedTo() != nil) {
			ok := n.probe(prefix, c)
			if now := n.hooks.elapsed(); ok && (inspected < 0 || now-inspected > inspectEvery) {
				inspected = now
				if info, err := n.control.Info(context.Background()).Result(); err == nil {
					inspect(n.addr, info)
				}
			}
			if first--; ok && first > 0 {
				continue
			}
		}
		select {
		case <-n.stop:
			return
		case <-tick.C:
		}
	}
}

// probe asks the node for its time and for a key, and reports whether the node is usable. The key is
// needed because a node that loads its data also answers TIME. probe reports the result to the
// breaker, and adds the time to c as a sample.
func (n *node) probe(prefix string, c *clock.Clock) bool {
	report, ok := n.breaker.allow()
	if !ok {
		return false
	}
	ctx := context.Background()
	pipe := n.control.Pipeline()
	shown := pipe.Time(ctx)
	key := pipe.Get(ctx, prefix)
	sent := n.hooks.elapsed()
	_, _ = pipe.Exec(ctx)
	received := n.hooks.elapsed()
	e := useless(key.Err())
	report(e)
	if e != nil {
		n.hooks.trouble()
	}
	if shown.Err() != nil {
		return false
	}
	n.stats.rtt.Store(int64(received - sent))
	c.Add(n.hooks.elapsed(), clock.Sample{
		Node: n.addr, Sent: sent, Received: received, Shown: limit.Instant(shown.Val().UnixNano()),
	})
	n.sampled.CompareAndSwap(0, max(1, int64(n.hooks.elapsed())))
	return e == nil
}

// useless returns the engine's error for err, the error of a command that reads, if err means that
// the node is unusable. Otherwise it returns nil.
func useless(err error) *Error {
	if err == nil || err == redis.Nil { //nolint:errorlint // it is never wrapped
		return nil
	}
	e := failed(err, false)
	if !e.useless() {
		return nil
	}
	return e
}

// inspection has the parts of a node's INFO that are logged: its version, and warnings about its
// configuration.
type inspection struct {
	version  string
	warnings []string
}

// inspectInfo returns the inspection of info, the reply to INFO.
func inspectInfo(info string) inspection {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	var is inspection
	is.version = "Redis " + fields["redis_version"]
	if v := fields["valkey_version"]; v != "" {
		is.version = "Valkey " + v
	}
	if p := fields["maxmemory_policy"]; p != "" && p != "noeviction" {
		is.warnings = append(is.warnings, "maxmemory-policy is "+p+": a limit that is evicted starts again, so that more is admitted; set it to noeviction")
	}
	if replicas, err := strconv.Atoi(fields["connected_slaves"]); err == nil && replicas > 0 && fields["min_slaves_good_slaves"] == "" {
		is.warnings = append(is.warnings, "min-replicas-to-write is 0: a master that is cut off goes on admitting until it is replaced; consider 1")
	}
	if major, _, _ := strings.Cut(fields["redis_version"], "."); major != "" {
		if n, err := strconv.Atoi(major); err == nil && n < 6 {
			is.warnings = append(is.warnings, "version is "+is.version+": it is not tested below Redis 6.2")
		}
	}
	return is
}
