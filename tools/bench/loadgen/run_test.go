package loadgen_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
)

// rig is how a test runs a server.
type rig struct {
	driver string
	// start starts a server with a handler until the test ends.
	start func(t *testing.T, handle fakeresp.Handler) loadgen.Target
}

// suite holds the tests of every driver. This test runs the goroutine driver in virtual time.
// TestDriversOverSockets, a real test, runs each driver of the system.
var suite = map[string]func(t *testing.T, d rig){
	"counts": runCounts, "runs for a time": runsForATime, "open loop": runsOpenLoop, "catches over-admission": catchesOverAdmission,
	"greets": greets, "ends when told to": endsWhenToldTo, "gives up on silence": givesUpOnSilence, "fails with the connection": failsWithTheConnection,
}

func TestDriver(t *testing.T) {
	for name, test := range suite {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { test(t, rig{driver: loadgen.DriverGoroutine, start: inBubble}) })
		})
	}
}

// inBubble starts a server on a virtual network. A command takes two milliseconds there.
func inBubble(t *testing.T, handle fakeresp.Handler) loadgen.Target {
	t.Helper()
	const client, server = "10.0.0.1", "10.0.0.2"
	n := simnet.New()
	for _, way := range [][2]string{{client, server}, {server, client}} {
		n.Delay(way[0], way[1], func() time.Duration { return time.Millisecond })
	}
	l, err := n.Listen(server + ":6379")
	require.NoError(t, err)
	fakeresp.Serve(t, l, handle)
	target := targetAt(t, l.Addr().String())
	target.Dialer = func(ctx context.Context, _, address string) (net.Conn, error) { return n.Dial(ctx, client, address) }
	return target
}

func targetAt(t testing.TB, address string) loadgen.Target {
	t.Helper()
	target := loadgen.Target{Name: "fake"}
	require.NoError(t, target.ParseAddress(address))
	return target
}

// throttling replies to CL.THROTTLE k 15 30 60 like a server whose clock runs too fast by a factor.
// With a factor above 1 it grants too much. It counts the commands.
func throttling(t testing.TB, speed int64, calls *int) fakeresp.Handler {
	quota, err := gcra.NewQuota(4, 10, 1)
	require.NoError(t, err)
	started := time.Now()
	tats := make(map[string]limit.Instant)
	return func(args []string) string {
		if args[0] != "CL.THROTTLE" {
			return "+OK\r\n"
		}
		*calls++
		now := limit.Instant(1e18).Add(time.Since(started) * time.Duration(speed))
		next, d, _ := gcra.Decide(tats[args[1]], now, &quota, 1)
		tats[args[1]] = next
		return fakeresp.Five(d.Refused, d.Limit, d.Remaining, 0, 0)
	}
}

const throttle = "CL.THROTTLE {key} 4 10 1"

func runCounts(t *testing.T, d rig) {
	calls := 0
	target := d.start(t, throttling(t, 1, &calls))
	for _, pipeline := range []int{1, 7} {
		calls = 0
		o := load(t, throttle)
		o.Driver, o.Connections, o.Threads, o.Pipeline, o.Count = d.driver, 5, 2, pipeline, 1003
		r, err := loadgen.Run(t.Context(), target, o)
		require.NoError(t, err)
		require.Empty(t, r.Failed())
		require.EqualValues(t, 1003, r.Count())
		require.Equal(t, 1003, calls)
		require.EqualValues(t, 1003, r.Commands[0].Allowed+r.Commands[0].Denied)
		require.False(t, r.Violated())
		require.Equal(t, 10, r.Checks[0].Keys)
		require.Positive(t, r.PerSecond())
	}
}

func runsForATime(t *testing.T, d rig) {
	calls := 0
	target := d.start(t, throttling(t, 1, &calls))
	o := load(t, throttle)
	o.Driver, o.Connections, o.Threads, o.Pipeline = d.driver, 4, 2, 2
	o.Warmup, o.Duration = 500*time.Millisecond, 500*time.Millisecond
	glances := 0
	o.Progress = func(loadgen.Live) { glances++ }
	r, err := loadgen.Run(t.Context(), target, o)
	require.NoError(t, err)
	require.Empty(t, r.Failed())
	require.Less(t, r.Count(), int64(calls), "the warm-up is not counted")
	require.Positive(t, glances)
	require.GreaterOrEqual(t, r.Elapsed, time.Duration(1))
}

func runsOpenLoop(t *testing.T, d rig) {
	calls := 0
	target := d.start(t, throttling(t, 1, &calls))
	o := load(t, throttle)
	o.Driver, o.Connections, o.Threads, o.Rate, o.Duration = d.driver, 6, 2, 2000, 300*time.Millisecond
	r, err := loadgen.Run(t.Context(), target, o)
	require.NoError(t, err)
	require.Empty(t, r.Failed())
	require.EqualValues(t, 600, r.Count(), "every command of the schedule was sent, however late")

	o.Count = 100
	r, err = loadgen.Run(t.Context(), target, o)
	require.NoError(t, err)
	require.Empty(t, r.Failed())
	require.EqualValues(t, 100, r.Count())
}

func catchesOverAdmission(t *testing.T, d rig) {
	calls := 0
	o := load(t, throttle)
	o.Driver, o.Connections, o.Pipeline, o.Rate, o.Count = d.driver, 4, 4, 4000, 4000 // about a second
	o.Keys.Count = 2
	r, err := loadgen.Run(t.Context(), d.start(t, throttling(t, 10, &calls)), o)
	require.NoError(t, err)
	require.Empty(t, r.Failed(), "each reply looks well")
	require.True(t, r.Violated())
	check := r.Checks[0]
	require.Equal(t, 2, check.Violations)
	require.Greater(t, check.Worst[0].Granted, check.Bound)
	require.Contains(t, check.String(), "VIOLATED")

	o.SkipChecks = true
	r, err = loadgen.Run(t.Context(), d.start(t, throttling(t, 10, &calls)), o)
	require.NoError(t, err)
	require.Empty(t, r.Checks)
}

func TestFloodCatchesOverAdmission(t *testing.T) { bubble.Test(t, floodCatchesOverAdmission) }

func floodCatchesOverAdmission(t *testing.T) {
	generous := func([]string) string { return fakeresp.Five(0, 5, 4, -1, 1) }
	o := load(t, "CL.THROTTLE {key} 4 10 1 6")
	o.Keys = loadgen.KeySpec{Kind: loadgen.KeyFlood, First: 1000}
	o.Connections, o.Count = 3, 10
	r, err := loadgen.Run(t.Context(), inBubble(t, generous), o)
	require.NoError(t, err)
	require.True(t, r.Violated(), "no key may have 6 at once")
	require.Contains(t, r.Checks[0].String(), "granted 6 at once, at most 5 may pass")
	require.EqualValues(t, 1012, r.NextKey, "each connection has used its own")
}

func greets(t *testing.T, d rig) {
	var greetings []string
	calls := 0
	answer := throttling(t, 1, &calls)
	target := d.start(t, func(args []string) string {
		if args[0] != "CL.THROTTLE" {
			greetings = append(greetings, strings.Join(args, " "))
		}
		return answer(args)
	})
	target.User, target.Password, target.Database, target.RESP3 = "me", "secret", 3, true
	o := load(t, throttle)
	o.Driver, o.Count = d.driver, 20
	r, err := loadgen.Run(t.Context(), target, o)
	require.NoError(t, err)
	require.EqualValues(t, 20, r.Count())
	require.Equal(t, []string{"AUTH me secret", "HELLO 3", "SELECT 3", "INFO server"}, greetings)
}

func endsWhenToldTo(t *testing.T, d rig) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	answer := throttling(t, 1, &calls)
	target := d.start(t, func(args []string) string {
		if calls == 100 {
			cancel()
		}
		return answer(args)
	})
	o := load(t, throttle)
	o.Driver, o.Duration = d.driver, time.Hour
	r, err := loadgen.Run(ctx, target, o)
	require.NoError(t, err)
	require.Empty(t, r.Failed())
	require.GreaterOrEqual(t, r.Count(), int64(100))
}

func givesUpOnSilence(t *testing.T, d rig) {
	for _, rate := range []float64{0, 50} {
		calls := 0
		target := d.start(t, func(args []string) string {
			if calls++; calls > 10 {
				return ""
			}
			return "+OK\r\n"
		})
		o := load(t, "SET {key} x")
		o.Driver, o.Connections, o.Rate, o.Grace, o.Duration = d.driver, 2, rate, 200*time.Millisecond, 400*time.Millisecond
		r, err := loadgen.Run(t.Context(), target, o)
		require.NoError(t, err)
		require.Positive(t, r.Unanswered)
		require.Contains(t, r.Failed()[0], "never answered")
	}
}

func failsWithTheConnection(t *testing.T, d rig) {
	calls := 0
	target := d.start(t, func([]string) string {
		if calls++; calls > 20 {
			return fakeresp.Hangup
		}
		return "+OK\r\n"
	})
	o := load(t, "PING")
	o.Driver, o.Connections, o.Duration = d.driver, 3, time.Hour
	_, err := loadgen.Run(t.Context(), target, o)
	require.ErrorContains(t, err, "driving fake")

	target = d.start(t, func(args []string) string { return "HTTP/1.1 400 Bad Request\r\n" })
	_, err = loadgen.Run(t.Context(), target, o)
	require.ErrorContains(t, err, "not RESP")
}

func TestRunRefuses(t *testing.T) { bubble.Test(t, runRefuses) }

func runRefuses(t *testing.T) {
	target := inBubble(t, func([]string) string { return "-NOAUTH no\r\n" })
	for name, change := range map[string]func(*loadgen.Options){
		"no command":     func(o *loadgen.Options) { o.Mix = nil },
		"no connection":  func(o *loadgen.Options) { o.Connections = 0 },
		"no pipeline":    func(o *loadgen.Options) { o.Pipeline = 0 },
		"long pipeline":  func(o *loadgen.Options) { o.Pipeline = 1e6 },
		"negative rate":  func(o *loadgen.Options) { o.Rate = -1 },
		"no end":         func(o *loadgen.Options) { o.Duration = 0 },
		"negative start": func(o *loadgen.Options) { o.Warmup = -1 },
		"no keys":        func(o *loadgen.Options) { o.Keys.Count = 0 },
		"no driver":      func(o *loadgen.Options) { o.Driver = "none of ours" },
		"no threads":     func(o *loadgen.Options) { o.Threads = -1 },
	} {
		o := load(t, "PING")
		change(&o)
		_, err := loadgen.Run(t.Context(), target, o)
		require.Error(t, err, name)
	}
	target.Password = "wrong"
	_, err := loadgen.Run(t.Context(), target, load(t, "PING"))
	require.ErrorContains(t, err, "NOAUTH")
	_, err = loadgen.Run(t.Context(), targetAt(t, filepath.Join(t.TempDir(), "nobody")), load(t, "PING"))
	require.ErrorContains(t, err, "connecting")
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]loadgen.Target{
		"6380":                             {Network: "tcp", Address: "127.0.0.1:6380"},
		"example.org:1":                    {Network: "tcp", Address: "example.org:1"},
		"[::1]:6379":                       {Network: "tcp", Address: "[::1]:6379"},
		"/run/cell.sock":                   {Network: "unix", Address: "/run/cell.sock"},
		"unix:cell.sock":                   {Network: "unix", Address: "cell.sock"},
		"unix:///run/x":                    {Network: "unix", Address: "/run/x"},
		"redis://me:pa%20ss@h:7/4":         {Network: "tcp", Address: "h:7", User: "me", Password: "pa ss", Database: 4},
		"redis://:secret@example.org":      {Network: "tcp", Address: "example.org:6379", Password: "secret"},
		"redis://:secret@[2001:db8::1]:99": {Network: "tcp", Address: "[2001:db8::1]:99", Password: "secret"},
	} {
		var got loadgen.Target
		require.NoError(t, got.ParseAddress(text), text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "host", "host:", "host:http", "redis://:s3cret@h:x/", "redis://h/a:s3cret"} {
		var got loadgen.Target
		err := got.ParseAddress(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
