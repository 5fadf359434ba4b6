package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/examples/demo"
)

// files is the folder of the configuration, below the folder of the module. It is the example of the documentation.
const files = "examples/envoy"

// patience is the maximum time until Envoy is ready.
const patience = time.Minute

// gateway has the processes of the demonstration, and the addresses of the server and of Envoy.
type gateway struct {
	*demo.Processes
	*show
	server, envoy string
}

// start starts the page, the server, and Envoy, and returns when Envoy asks the server. All of them end when ctx ends.
func (g *gateway) start(ctx context.Context) error {
	program, err := demo.Envoy(g.root)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("redis-cli"); err != nil {
		return errors.New("no redis-cli: make setup installs it")
	}
	ports, err := demo.FreePorts(7)
	if err != nil {
		return err
	}
	local := func(port string) string { return net.JoinHostPort("127.0.0.1", port) }
	if err := servePage(ctx, local(ports[0])); err != nil {
		return err
	}
	g.server, g.envoy = local(ports[1]), local(ports[2])
	if err := g.startServer(ports[1], ports[3]); err != nil {
		return err
	}
	config, err := demo.EnvoyConfig(filepath.Join(g.root, files, "envoy.yaml"), map[string]string{
		"3000": ports[0], "8081": ports[3], "8080": ports[4], "9901": ports[5], "10000": ports[2], "10001": ports[6],
	})
	if err != nil {
		return err
	}
	// On a busy machine, Envoy must not let a request of acme pass because of a timeout.
	config = strings.Replace(config, "timeout: 0.02s", "timeout: 1s", 1)
	folder, err := g.Folder(g.envoy)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "envoy.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	fmt.Fprintf(g.w, "Starting Envoy with %s/envoy.yaml, in front of a page\n", files)
	if err := g.Start(g.envoy, program, demo.EnvoyArguments(file)...); err != nil {
		return err
	}
	return awaitHealthy(ctx, "http://"+local(ports[5])+"/clusters")
}

// servePage serves the page until ctx ends.
func servePage(ctx context.Context, addr string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	page := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Hello\n") // fails only if the client has disconnected
	})}
	go page.Serve(l) //nolint:errcheck // it ends with Close
	context.AfterFunc(ctx, func() { _ = page.Close() })
	return nil
}

// startServer starts the server with the rules, and returns when it answers.
func (g *gateway) startServer(port, rls string) error {
	path, err := filepath.Abs(g.show.server)
	if err != nil {
		return err
	}
	rules, err := filepath.Abs(filepath.Join(g.root, files, "ratelimit.yaml"))
	if err != nil {
		return err
	}
	fmt.Fprintf(g.w, "Starting cellserver with --rls-port, and the rules in %s/ratelimit.yaml\n", files)
	if err := g.Start(g.server, path, "--port", port, "--bind", "127.0.0.1", "--rls-port", rls, "--rls-config", rules); err != nil {
		return fmt.Errorf("%w: make build makes the program", err)
	}
	return g.Await([]string{g.server}, func(c *redis.Client) error { return c.Ping(context.Background()).Err() })
}
