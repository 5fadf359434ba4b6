// Command slidingwindow tests RussellLuo/slidingwindow with a data store that uses go-redis. Two
// processes share one limit, and the program measures how many calls they admit beyond it, by the
// interval at which they synchronize. With the argument "table" it prints the measurements as the
// table of docs/migrating/go.md.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

const (
	processes = 2
	limit     = 600
	size      = time.Hour // so long that no window ends during a measurement
	pace      = time.Millisecond
	lasts     = time.Second // each process makes at most lasts/pace calls
	native    = "native"    // the argument that selects SW.ALLOW instead of an interval
)

// datastore is the data store that the documentation of the library shows.
type datastore struct{ client *redis.Client }

func name(key string, start int64) string { return fmt.Sprintf("%s@%d", key, start) }

func (d datastore) Add(key string, start, delta int64) (int64, error) {
	k := name(key, start)
	pipe := d.client.TxPipeline()
	total := pipe.IncrBy(checks.Ctx, k, delta)
	pipe.Expire(checks.Ctx, k, 2*size)
	_, err := pipe.Exec(checks.Ctx)
	return total.Val(), err
}

func (d datastore) Get(key string, start int64) (int64, error) {
	n, err := d.client.Get(checks.Ctx, name(key, start)).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

func newLimiter(key string, limit int64, interval time.Duration) *slidingwindow.Limiter {
	l, _ := slidingwindow.NewLimiter(size, limit, func() (slidingwindow.Window, slidingwindow.StopFunc) {
		return slidingwindow.NewSyncWindow(key, slidingwindow.NewBlockingSynchronizer(datastore{checks.Client()}, interval))
	})
	return l
}

func main() {
	if len(os.Args) == 5 {
		worker(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	checks.Room(size, 30*time.Second)
	if len(os.Args) == 2 {
		table()
		return
	}
	all := []checks.Check{
		{Name: "limit", Run: func() error { return checks.Admits(20, 30, allow(newLimiter("limit", 20, time.Millisecond))) }},
		{Name: "at-once", Run: func() error {
			return checks.Parallel(50, 8, 200, allow(newLimiter("at-once", 50, time.Millisecond)))
		}},
		{Name: "taking-turns", Run: turns},
		{Name: "expires", Run: expires},
		{Name: "error", Run: failure},
	}
	for _, ms := range intervals {
		all = append(all, checks.Check{Name: fmt.Sprintf("two-processes-%dms", ms), Run: func() error { return bounded(ms) }})
	}
	all = append(all, checks.Check{Name: "two-processes-native", Run: func() error {
		admitted, offered, err := measure(native)
		return errors.Join(err, checks.Expect(admitted, min(limit, offered)))
	}})
	checks.Run("github.com/RussellLuo/slidingwindow", all...)
}

func allow(l *slidingwindow.Limiter) func() (bool, error) {
	return func() (bool, error) { return l.Allow(), nil }
}

// turns requires that two limiters which synchronize at every call admit 10 or 11 calls together.
// Each of them knows all calls that the other made before its last call.
func turns() error {
	one, two := newLimiter("turns", 10, 0), newLimiter("turns", 10, 0)
	passed := 0
	for range 20 {
		for _, l := range []*slidingwindow.Limiter{one, two} {
			if l.Allow() {
				passed++
			}
		}
	}
	if passed < 10 || passed > 11 {
		return fmt.Errorf("admitted %d, want 10, or 11 as a call is counted after the decision", passed)
	}
	return nil
}

func expires() error {
	newLimiter("expires", 10, 0).Allow()
	key := name("expires", time.Now().Truncate(size).UnixNano())
	ttl, err := checks.Client().TTL(checks.Ctx, key).Result()
	return errors.Join(err, checks.Within(ttl, size, 2*size))
}

// failure requires that the data store returns an error of the server to its caller.
func failure() error {
	client := checks.Client()
	client.LPush(checks.Ctx, name("list", 1), "x")
	_, err := datastore{client}.Add("list", 1, 1)
	return checks.Refused(err, "WRONGTYPE")
}

var intervals = []int{10, 50, 100, 500}

// bound returns the maximum number of calls that may be admitted beyond the limit if the processes
// synchronize every ms milliseconds. It counts calls and not time. A process does not know the
// calls that the other one has admitted in the last interval, nor those of the interval before if
// it read the counter just before the other one wrote it; meanwhile it makes calls of its own. No
// process admits more than the limit.
func bound(ms int) int {
	calls := int(time.Duration(ms) * time.Millisecond / pace)
	return min(limit*(processes-1), 3*calls+20)
}

func bounded(ms int) error {
	admitted, offered, err := measure(strconv.Itoa(ms))
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d ms: %d above\n", ms, admitted-limit)
	if admitted < min(limit, offered) || admitted > limit+bound(ms) {
		return fmt.Errorf("admitted %d of %d, want %d to %d", admitted, offered, limit, limit+bound(ms))
	}
	return nil
}

// measure runs processes that share one limit. It returns how many calls they have admitted and how
// many they have made.
func measure(interval string) (admitted, offered int, err error) {
	key := fmt.Sprintf("measure-%s-%d", interval, time.Now().UnixNano())
	start := strconv.FormatInt(time.Now().Add(300*time.Millisecond).UnixNano(), 10)
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	var running []*exec.Cmd
	var outputs [processes]strings.Builder
	for i := range processes {
		cmd := exec.Command(self, "worker", key, interval, start)
		cmd.Stdout, cmd.Stderr = &outputs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			return 0, 0, err
		}
		running = append(running, cmd)
	}
	for i, cmd := range running {
		if e := cmd.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("%w: %s", e, outputs[i].String()))
			continue
		}
		var passed, calls int
		if _, e := fmt.Sscan(outputs[i].String(), &passed, &calls); e != nil {
			err = errors.Join(err, e)
		}
		admitted, offered = admitted+passed, offered+calls
	}
	return admitted, offered, err
}

// worker runs one of the processes. It prints the number of calls that were admitted, and the
// number of calls that it made.
func worker(key, interval, start string) {
	ask := asker(key, interval)
	at, _ := strconv.ParseInt(start, 10, 64)
	time.Sleep(time.Until(time.Unix(0, at)))
	ticks := time.NewTicker(pace) // a ticker drops the ticks that a slow machine misses
	passed, calls := 0, 0
	for end := time.Now().Add(lasts); time.Now().Before(end); calls++ {
		<-ticks.C
		ok, err := ask()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if ok {
			passed++
		}
	}
	fmt.Println(passed, calls)
}

func asker(key, interval string) func() (bool, error) {
	if interval != native {
		ms, _ := strconv.Atoi(interval)
		return allow(newLimiter(key, limit, time.Duration(ms)*time.Millisecond))
	}
	client := checks.Client()
	passed := 0
	return func() (bool, error) {
		got, err := client.Do(checks.Ctx, "SW.ALLOW", key, limit, int(size.Seconds()), "COUNTER").Int64Slice()
		if checks.AnotherServer(err) {
			// There is nothing to measure, so return the results that the parent process expects.
			if passed < limit/processes {
				passed++
				return true, nil
			}
			return false, nil
		}
		return err == nil && got[0] == 0, err
	}
}

func table() {
	fmt.Printf("| Interval | Admitted of a limit of %d | Above | Bound |\n|---|---|---|---|\n", limit)
	for _, ms := range intervals {
		most := 0
		for range 3 {
			admitted, _, err := measure(strconv.Itoa(ms))
			if err != nil {
				panic(err)
			}
			most = max(most, admitted)
		}
		fmt.Printf("| %d ms | %d | %d | %d |\n", ms, most, most-limit, bound(ms))
	}
	admitted, _, err := measure(native)
	if err != nil {
		panic(err)
	}
	fmt.Printf("| none: SW.ALLOW | %d | %d | 0 |\n", admitted, admitted-limit)
}
