package main

import (
	"errors"
	"io"
	"os/exec"
	"time"
)

// demo is what is shown.
type demo struct {
	server string // the program
	// kill is after how many seconds of load the node is killed, and seconds how long the
	// load goes on.
	kill, seconds int
	nodeTimeout   time.Duration
	w             io.Writer
}

// The limit that is shown, as the words of a command: 100 at once, then 100 each second.
const (
	key       = "api"
	perSecond = 100
	burst     = 100
)

func command() []any { return []any{"CL.THROTTLE", key, burst - 1, perSecond, 1} }

// findEngine is valkey where there is one, else redis.
func findEngine() (string, error) {
	for _, name := range []string{"valkey", "redis"} {
		_, err := exec.LookPath(name + "-server")
		if err == nil {
			_, err = exec.LookPath(name + "-cli")
		}
		if err == nil {
			return name, nil
		}
	}
	return "", errors.New("no valkey-server with valkey-cli, nor redis-server with redis-cli: make setup installs them")
}
