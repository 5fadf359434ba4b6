package demo

import (
	"errors"
	"os/exec"
)

// engines are the programs that a demonstration may use, the preferred one first.
var engines = []string{"valkey", "redis"}

// Cluster returns the name of an engine of which the server and the command line client are
// installed: valkey or redis.
func Cluster() (string, error) {
	for _, name := range engines {
		if installed(name+"-server") && installed(name+"-cli") {
			return name, nil
		}
	}
	return "", errors.New("no valkey-server with valkey-cli, nor redis-server with redis-cli: make setup installs them")
}

// Sentinel returns the words of the command line that starts a stock sentinel with a
// configuration file: valkey-sentinel or redis-sentinel, or the server as a sentinel.
func Sentinel(file string) ([]string, error) {
	for _, name := range engines {
		if installed(name + "-sentinel") {
			return []string{name + "-sentinel", file}, nil
		}
	}
	for _, name := range engines {
		if installed(name + "-server") {
			return []string{name + "-server", file, "--sentinel"}, nil
		}
	}
	return nil, errors.New("no valkey-sentinel, redis-sentinel, valkey-server or redis-server: make setup installs them")
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
