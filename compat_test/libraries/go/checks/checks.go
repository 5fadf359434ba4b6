// Package checks runs the checks of the programs for Go libraries and reports the results. It
// prints one line per check to the standard output (see README.md two folders up).
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

// Margin is added to each time that a library tells a caller to wait, since the clocks of the
// library and of the server may round differently.
const Margin = 60 * time.Millisecond

// reopenWithin is the maximum time after which a limit of one or two seconds must admit a call
// again.
const reopenWithin = 20 * time.Second

// Check is one named check.
type Check struct {
	Name string
	Run  func() error
}

// Ctx is the context of all calls.
var Ctx = context.Background()

// Addr returns the host and the port of the server.
func Addr() string { return os.Getenv("CELL_ADDR") }

// Client returns a new client of the server, with connections of its own.
func Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: Addr(), PoolSize: 8})
}

// Run runs all checks in order, reports their results, and ends the process: with the status 1 if a
// check has failed, and otherwise 0. module is the path of the library, whose version is reported.
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

// Expect returns an error unless got and want are equal and have the same type.
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

// Refused returns an error unless err is an error whose text contains part.
func Refused(err error, part string) error {
	if err == nil || !strings.Contains(err.Error(), part) {
		return fmt.Errorf("got the error %v, want one with %q", err, part)
	}
	return nil
}

// Admits makes as many calls as calls says, one after another. It returns an error unless exactly
// want of them are admitted.
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

// Parallel makes as many calls as calls says, from concurrent callers. It returns an error unless
// exactly want of them are admitted. Caller i uses the function with the index i modulo the number
// of functions. The functions may belong to several clients.
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

// Reopens repeats allow until a call is admitted, for at most reopenWithin.
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

// Room makes sure that at least room is left of the present period of the wall clock. If less is
// left, it waits for the next period. So the calls that follow fall into one period.
func Room(period, room time.Duration) {
	now := time.Now()
	left := now.Truncate(period).Add(period).Sub(now)
	if left < room {
		time.Sleep(left + 10*time.Millisecond)
	}
}

// OwnTests returns a check for each of tests, tests of a library that were compiled into the file
// binary beside this program. A check passes if its test passes. The tests run once, with the
// variables in environment.
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

// AnotherServer reports whether err says that a command of cellserver is unknown, because the
// program runs against a server of CELL_SERVER_CMD.
func AnotherServer(err error) bool {
	return err != nil && os.Getenv("CELL_SERVER_CMD") != "" && strings.Contains(err.Error(), "unknown command")
}
