// Package checks has the checks that every Go client library must pass. It reports one line per
// check on the standard output (see README.md two folders up).
package checks

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// Adapter is a client library in the form that the checks use. A reply is an int64, a string or a
// []int64. An element of the replies to a pipeline may also be an error.
type Adapter interface {
	// Call sends one command. The arguments may contain any bytes.
	Call(args ...string) (any, error)
	// Pipeline sends all commands before it reads the first reply.
	Pipeline(commands [][]string) ([]any, error)
	// IsReplyError reports whether an error is an error reply of the server.
	IsReplyError(error) bool
}

// Check is a named check in addition to those that every client must pass.
type Check struct {
	Name string
	Run  func() error
}

const (
	usage = "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	// binaryKey holds a NUL, a line end and bytes that are not UTF-8.
	binaryKey = "\x00\xff\r\n\x80 k"
	// reconnectWithin is the maximum time that a client may take to reach a restarted server.
	reconnectWithin = 20 * time.Second
)

// Fresh is the reply to the first `CL.THROTTLE key 15 30 60`.
var Fresh = []int64{0, 16, 15, -1, 2}

// Expect returns an error unless got and want are equal and have the same type.
func Expect(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %#v, want %#v", got, want)
	}
	return nil
}

// Addr returns the host and the port of the server. Protocol returns the version of RESP to
// request; "" means the default of the client.
func Addr() string     { return os.Getenv("CELL_ADDR") }
func Protocol() string { return os.Getenv("CELL_RESP") }

// Run runs all checks in order, reports their results, and ends the process: with the status 1 if a
// check has failed, and otherwise 0. module is the path of the client library, whose version is
// reported.
func Run(module string, a Adapter, extra ...Check) {
	say("info version " + version(module))
	s := suite{a}
	all := []Check{
		{"connect", s.ping},
		{"throttle-allowed", s.allowed},
		{"throttle-denied", s.denied},
		{"pipeline-100", s.pipeline},
		{"error-usage", s.errorUsage},
		{"error-argument", s.errorArgument},
		{"error-unknown-command", s.errorUnknownCommand},
		{"error-in-pipeline", s.errorInPipeline},
		{"binary-key", func() error { return s.oddKey(binaryKey) }},
		{"empty-key", func() error { return s.oddKey("") }},
	}
	all = append(append(all, extra...), Check{"reconnect", s.reconnect})
	code := 0
	for _, check := range all {
		if err := check.Run(); err != nil {
			code = 1
			say(fmt.Sprintf("FAIL %s: %v", check.Name, err))
			continue
		}
		say("ok " + check.Name)
	}
	info, _ := a.Call("CLIENT", "INFO")
	if resp := regexp.MustCompile(`\bresp=(\d)`).FindStringSubmatch(fmt.Sprint(info)); resp != nil {
		say("info resp " + resp[1])
	}
	os.Exit(code)
}

// Fail reports that the client could not be created, and ends the process with the status 1.
func Fail(err error) {
	say(fmt.Sprintf("FAIL connect: %v", err))
	os.Exit(1)
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

type suite struct{ a Adapter }

// throttle calls CL.THROTTLE and returns the five integers of the reply. It returns an error unless
// they begin with want, which may have fewer than five values.
func (s suite) throttle(want []int64, args ...string) ([]int64, error) {
	got, err := s.a.Call(append([]string{"CL.THROTTLE"}, args...)...)
	if err != nil {
		return nil, err
	}
	return begins(got, want)
}

func begins(reply any, want []int64) ([]int64, error) {
	values, ok := reply.([]int64)
	if !ok || len(values) != len(Fresh) {
		return nil, fmt.Errorf("got %#v, want five integers", reply)
	}
	return values, Expect(values[:len(want)], want)
}

func (s suite) ping() error {
	got, err := s.a.Call("PING")
	return errors.Join(err, Expect(got, "PONG"))
}

func (s suite) allowed() error {
	_, first := s.throttle(Fresh, "allowed", "15", "30", "60")
	_, second := s.throttle([]int64{0, 16, 13}, "allowed", "15", "30", "60", "2")
	return errors.Join(first, second)
}

func (s suite) denied() error {
	if _, err := s.throttle([]int64{0, 1, 0, -1, 3600}, "denied", "0", "1", "3600"); err != nil {
		return err
	}
	got, err := s.throttle([]int64{1, 1, 0}, "denied", "0", "1", "3600")
	if err != nil {
		return err
	}
	if got[3] != got[4] || got[3] < 3500 || got[3] > 3600 {
		return fmt.Errorf("got %v, want retry and reset of about an hour", got)
	}
	return nil
}

func (s suite) pipeline() error {
	commands := make([][]string, 100)
	for i := range commands {
		commands[i] = []string{"CL.THROTTLE", "pipeline", "99", "100", "3600"}
	}
	replies, err := s.a.Pipeline(commands)
	if err != nil {
		return err
	}
	if err := Expect(len(replies), len(commands)); err != nil {
		return err
	}
	for i, reply := range replies {
		if _, err := begins(reply, []int64{0, 100, int64(99 - i)}); err != nil {
			return err
		}
	}
	return nil
}

// refused returns an error unless err is an error reply whose text contains part.
func (s suite) refused(err error, part string) error {
	if err == nil {
		return errors.New("got a reply, want an error")
	}
	if !s.a.IsReplyError(err) {
		return fmt.Errorf("got %T %w, want the client's type of an error reply", err, err)
	}
	if !strings.Contains(err.Error(), part) {
		return fmt.Errorf("the error text %q lacks %s", err, part)
	}
	return nil
}

func (s suite) errorUsage() error {
	_, err := s.a.Call("CL.THROTTLE", "key-only")
	if err := s.refused(err, usage); err != nil {
		return err
	}
	return Expect(strings.HasPrefix(err.Error(), "Cell error: "), true)
}

func (s suite) errorArgument() error {
	_, err := s.a.Call("CL.THROTTLE", "key", "many", "30", "60")
	return s.refused(err, "Couldn't parse as integer: many")
}

func (s suite) errorUnknownCommand() error {
	_, err := s.a.Call("CL.NOSUCH", "a", "b")
	return errors.Join(s.refused(err, "unknown command 'CL.NOSUCH', with args beginning with: 'a' 'b'"), s.ping())
}

func (s suite) errorInPipeline() error {
	good := []string{"CL.THROTTLE", "error-in-pipeline", "15", "30", "60"}
	replies, err := s.a.Pipeline([][]string{good, {"CL.THROTTLE", "key-only"}, good})
	if err != nil {
		return err
	}
	refusal, _ := replies[1].(error)
	_, first := begins(replies[0], Fresh)
	_, last := begins(replies[2], []int64{0, 16, 14})
	return errors.Join(first, s.refused(refusal, usage), last)
}

func (s suite) oddKey(key string) error {
	_, first := s.throttle(Fresh, key, "15", "30", "60")
	_, second := s.throttle([]int64{0, 16, 14}, key, "15", "30", "60")
	deleted, err := s.a.Call("DEL", key)
	_, again := s.throttle(Fresh, key, "15", "30", "60")
	return errors.Join(first, second, err, Expect(deleted, int64(1)), again)
}

func (s suite) reconnect() error {
	say("RESTART")
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "RESTARTED" {
		return errors.New("the parent did not restart the server")
	}
	deadline := time.Now().Add(reconnectWithin)
	for {
		got, err := s.a.Call("CL.THROTTLE", "reconnect", "15", "30", "60")
		if err == nil {
			return Expect(got, Fresh)
		}
		// The client notices the broken connection only when it uses it.
		if s.a.IsReplyError(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
