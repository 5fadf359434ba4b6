// Command whenaway shows what to do when the limiter does not answer: decide without it, and soon.
//
// It reads lines "open" or "closed" and prints for each whether a request may go ahead, whether the
// limiter or the program decided that, and after how many milliseconds. REDIS_URL is the address of
// the server (redis://127.0.0.1:6379).
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const patience = 50 * time.Millisecond

func connect(url string) (*redis.Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("reading the URL: %w", err)
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = patience, patience, patience
	o.PoolTimeout = patience       // for a call that waits for a free connection
	o.MaxRetries = -1              // the default is three more attempts
	o.DialerRetries = 1            // the default dials five times
	o.ContextTimeoutEnabled = true // the deadline below ends reading and writing, too
	return redis.NewClient(o), nil
}

// allowed returns in ok whether a request with this key may go ahead, and in answered
// whether the limiter has answered. The deadline covers the whole call: waiting for a
// connection, dialling, sending the command and reading the reply.
func allowed(ctx context.Context, client *redis.Client, key string, failOpen bool) (ok, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := client.Do(ctx, "CL.THROTTLE", key, 15, 30, 60).Int64Slice()
	var refused redis.Error
	switch {
	case err == nil:
		return reply[0] == 0, true
	case errors.As(err, &refused) && !away(refused):
		return false, true // a client may have caused it by its key: log it
	}
	return failOpen, false
}

// away reports whether an error says that the limiter cannot decide now.
func away(err redis.Error) bool {
	code, _, _ := strings.Cut(err.Error(), " ")
	switch code {
	case "UNAVAILABLE", "LOADING", "BUSY", "MISCONF", "NOREPLICAS", "READONLY", "MASTERDOWN":
		return true
	}
	return false
}

func main() {
	redis.SetLogger(silent{})
	client, err := connect(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatal(err)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		began := time.Now()
		ok, answered := allowed(context.Background(), client, "away:go", in.Text() == "open")
		took := time.Since(began).Milliseconds()
		fmt.Println(map[bool]string{true: "allowed", false: "refused"}[ok], map[bool]string{true: "answered", false: "away"}[answered], took)
	}
}

// silent drops the lines that go-redis writes for each connection it cannot make.
type silent struct{}

// Printf implements the logger of go-redis.
func (silent) Printf(context.Context, string, ...any) {}
