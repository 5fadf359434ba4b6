package demo

import (
	"errors"
	"os/exec"
)

// engines are the names of the engines that a demonstration may use, the preferred one first.
var engines = []string{"valkey", "redis"}

// Cluster returns the name of an engine, valkey or redis, whose server and command line client are
// installed. It returns an error if there is none.
func Cluster() (string, error) {
	for _, name := range engines {
		if installed(name+"-server") && installed(name+"-cli") {
			return name, nil
		}
	}
	return "", errors.New("no valkey-server with valkey-cli, nor redis-server with redis-cli: make setup installs them")
}

// Sentinel returns the words of the command line that starts a sentinel with the configuration file
// at the path file. The program is valkey-sentinel, redis-sentinel, or a server that runs as a
// sentinel. Sentinel returns an error if none is installed.
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
