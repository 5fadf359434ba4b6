// Command ratelimit is /bin/ratelimit of an image that takes the place of envoyproxy/ratelimit.
//
//	ratelimit [--name value ...]
//	ratelimit attach redis://[user:password@]host:port|unix://[user:password@]/path/of/socket
//
// It runs `cellserver ratelimit`, which it finds beside itself or on the path, with the same arguments and environment, passes
// signals on and ends as the server does. With CONFIG_TYPE=GRPC_XDS_SOTW it gets the rules of that server from a control plane. With
// attach it starts no server, and gets the rules of the one at the address.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/tools/xds"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the program. It returns the exit status.
func run(args []string) int {
	s, err := xds.FromEnvironment()
	if err != nil {
		return fail(err)
	}
	if len(args) == 2 && args[0] == "attach" {
		return attach(s, args[1])
	}
	return serve(s, args)
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "ratelimit:", err)
	return 1
}

// attach gets the rules of the server at address until a signal.
func attach(s *xds.Settings, address string) int {
	o, err := redis.ParseURL(address)
	if err != nil {
		return fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := follow(ctx, s, o); err != nil {
		return fail(err)
	}
	return 0
}

// follow gets the rules of the server that o reaches until ctx ends.
func follow(ctx context.Context, s *xds.Settings, o *redis.Options) error {
	o.DisableIdentity = true
	client := redis.NewClient(o)
	defer client.Close() //nolint:errcheck // nothing is left to be sent
	c := xds.Client{
		Settings: s, Directory: &xds.Directory{Path: s.Rules()}, Server: xds.Cellserver{Client: client},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	return c.Run(ctx) //nolint:wrapcheck // it names the variable
}

// serve runs the server, and gets its rules if they are from a control plane. It returns the exit status of the server.
func serve(s *xds.Settings, args []string) int {
	path, err := program()
	if err != nil {
		return fail(err)
	}
	all := []string{"ratelimit"}
	socket := filepath.Join(filepath.Dir(s.Rules()), ".cellserver.sock")
	if s.Uses() {
		if err := os.MkdirAll(filepath.Dir(s.Rules()), 0o755); err != nil { //nolint:gosec // rules are no secret
			return fail(err)
		}
		all = append(all, "--unixsocket", socket)
	}
	cmd := exec.Command(path, append(all, args...)...) //nolint:gosec // the arguments are those of the server
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // an error means that the process has ended
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		if !s.Uses() {
			return
		}
		err := follow(ctx, s, &redis.Options{Network: "unix", Addr: socket, Password: os.Getenv("CELLSERVER_REQUIREPASS")})
		if err != nil {
			failed <- err
			_ = cmd.Process.Signal(syscall.SIGTERM) // an error means that the process has ended
		}
	}()
	err = cmd.Wait()
	stop()
	if wrong := <-failed; wrong != nil {
		return fail(wrong)
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.ExitCode() >= 0:
		return ended.ExitCode()
	}
	return fail(err)
}

// program returns the path of the server.
func program() (string, error) {
	own, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(own), "cellserver")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	return exec.LookPath("cellserver") //nolint:wrapcheck // it has the name
}
