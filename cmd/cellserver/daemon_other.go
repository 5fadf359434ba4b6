//go:build !unix

package main

import (
	"errors"
	"io"
	"os"
)

const listens = "listens\n"

// detach returns an error: processes have no sessions on this system.
func detach([]string, io.Reader) error {
	return errors.New("daemonize: this system does not support it: run cellserver as a service")
}

func detached() *os.File { return nil }
