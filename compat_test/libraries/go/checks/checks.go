// Package checks is what the programs of the Go libraries report with: one line per
// check on standard output (see README.md two folders up).
package checks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Margin is added to every wait that a library asks for, since its clock and the
// server's may round differently.
const Margin = 60 * time.Millisecond

// reopenWithin is how long a limit of a second or two may take to open again.
const reopenWithin = 20 * time.Second

// Check is one named check.
type Check struct {
	Name string
	Run  func() error
}

// Ctx is for the many calls that take one.
var Ctx = context.Background()

// Addr is the server's host:port.
func Addr() string { return os.Getenv("CELL_ADDR") }

// Client is a new client of the server, with connections of its own.
func Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: Addr(), PoolSize: 8})
}

// Run does every check in order and ends the process with the exit code. Module is the
// path of the library, whose version is reported.
func Run(module string, all ...Check) {
	say("info version " + version(module))
	code := 0
	for _, check := range all {
		if err := check.Run(); err != nil {
			code = 1
			say(fmt.Sprintf("FAIL %s: %v", check.Name, err))
			continue
		}
		say("ok " + check.Name)
	}
	os.Exit(code)
}

func say(line string) {
	fmt.Println(strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(line))
}

func version(module string) string {
	build, _ := debug.ReadBuildInfo()
	for _, dependency := range build.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "unknown"
}

// Expect returns an error unless got and want are the same, type included.
func Expect(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %#v, want %#v", got, want)
	}
	return nil
}

// Within returns an error unless low < got <= high.
func Within(got, low, high time.Duration) error {
	if got <= low || got > high {
		return fmt.Errorf("got %s, want more than %s and at most %s", got, low, high)
	}
	return nil
}

// Refused returns an error unless err is one whose text holds part.
func Refused(err error, part string) error {
	if err == nil || !strings.Contains(err.Error(), part) {
		return fmt.Errorf("got the error %v, want one with %q", err, part)
	}
	return nil
}

// Admits expects that want of calls sequential calls pass.
func Admits(want, calls int, allow func() (bool, error)) error {
	passed := 0
	for range calls {
		ok, err := allow()
		if err != nil {
			return err
		}
		if ok {
			passed++
		}
	}
	return Expect(passed, want)
}

// Parallel expects that want of calls pass when callers make them at once. The
// callers take turns with the functions, which may be those of several clients.
func Parallel(want, callers, calls int, allow ...func() (bool, error)) error {
	var passed, next atomic.Int64
	failures := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for next.Add(1) <= int64(calls) {
				ok, err := allow[i%len(allow)]()
				if err != nil {
					failures[i] = err
				}
				if ok {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errors.Join(failures...), Expect(int(passed.Load()), want))
}

// Reopens waits until a call passes.
func Reopens(allow func() (bool, error)) error {
	deadline := time.Now().Add(reopenWithin)
	for {
		ok, err := allow()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still refused after %s", reopenWithin)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Room waits for the next period of the clock if this one ends sooner than room, so
// that what follows falls into one period.
func Room(period, room time.Duration) {
	now := time.Now()
	left := now.Truncate(period).Add(period).Sub(now)
	if left < room {
		time.Sleep(left + 10*time.Millisecond)
	}
}

// OwnTests runs the compiled tests that a library ships, with the environment given,
// and expects the tests named to pass.
func OwnTests(binary string, environment []string, tests ...string) []Check {
	var output string
	run := sync.OnceFunc(func() {
		self, _ := os.Executable()
		dir := filepath.Dir(self)
		cmd := exec.Command(filepath.Join(dir, binary), "-test.v", "-test.run", "^("+strings.Join(tests, "|")+")$")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), environment...)
		text, _ := cmd.CombinedOutput()
		output = string(text)
	})
	var all []Check
	for _, name := range tests {
		all = append(all, Check{"own-" + name, func() error {
			run()
			if !regexp.MustCompile(`(?m)^--- PASS: ` + name + ` `).MatchString(output) {
				return fmt.Errorf("it did not pass: %s", output)
			}
			return nil
		}})
	}
	return all
}

// AnotherServer tells that a command of cellserver's is unknown because the programs
// run against a Redis.
func AnotherServer(err error) bool {
	return err != nil && os.Getenv("CELL_SERVER_CMD") != "" && strings.Contains(err.Error(), "unknown command")
}
