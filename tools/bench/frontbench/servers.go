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
	"regexp"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// perHour is the limit of all rules. No load reaches it.
const perHour = 4_000_000_000

// domain is the domain of the rules, and keys has the keys of their descriptors.
const domain = "bench"

var keys = []string{"tenant", "user", "path"}

// server is a running server: one process, or several that answer together.
type server struct {
	grpc, http string // addresses for gRPC and HTTP; "" if the server does not have the port
	profiles   string // address of the server's /debug/pprof/
	started    []*exec.Cmd
}

// servers has all servers that are measured. ratelimit is nil if its program is missing.
type servers struct {
	dir                          string
	empty, cellserver, ratelimit *server
}

// startAll starts the servers. Those that have started before an error have to be stopped, too.
func startAll(ctx context.Context, o *options) (*servers, error) {
	all := &servers{}
	var err error
	if all.dir, err = os.MkdirTemp("", "frontbench"); err != nil {
		return all, err
	}
	// ratelimit reads all files in the folder config below the folder of the program.
	rules := filepath.Join(all.dir, "ratelimit", "config", "rules.yaml")
	if err := os.MkdirAll(filepath.Dir(rules), 0o700); err != nil {
		return all, err
	}
	text := "domain: " + domain + "\ndescriptors:\n"
	for _, key := range keys {
		text += fmt.Sprintf("  - {key: %s, rate_limit: {unit: hour, requests_per_unit: %d}}\n", key, perHour)
	}
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		return all, err
	}
	for _, start := range []func(context.Context, *options) error{all.startEmpty, all.startCellserver, all.startRatelimit} {
		if err := start(ctx, o); err != nil {
			return all, err
		}
	}
	return all, nil
}

func address() string { return net.JoinHostPort("127.0.0.1", freeport.Choose()) }

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (all *servers) startEmpty(ctx context.Context, _ *options) error {
	s := &server{grpc: address(), http: address()}
	s.profiles, all.empty = s.http, s
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := s.run(all.dir, nil, self, "empty", "--grpc", s.grpc, "--http", s.http); err != nil {
		return err
	}
	return s.await(ctx, s.grpc, s.http)
}

func (all *servers) startCellserver(ctx context.Context, o *options) error {
	s := &server{grpc: address(), http: address(), profiles: address()}
	all.cellserver = s
	program, err := filepath.Abs(o.server)
	if err != nil {
		return err
	}
	if err := s.run(all.dir, nil, program, "--port", "0", "--rls-port", port(s.grpc), "--http-port", port(s.http), "--rls-config", "ratelimit/config",
		"--admin-port", port(s.profiles), "--admin-pprof", "yes", "--loglevel", "warning"); err != nil {
		return err
	}
	return s.await(ctx, s.grpc, s.http, s.profiles)
}

func (all *servers) startRatelimit(ctx context.Context, o *options) error {
	if o.ratelimit == "" {
		return nil
	}
	s := &server{grpc: address(), http: address(), profiles: address()}
	all.ratelimit = s
	redis := address()
	program, err := filepath.Abs(o.ratelimit)
	if err != nil {
		return err
	}
	if err := s.run(all.dir, nil, o.redis, "--port", port(redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"); err != nil {
		return err
	}
	if err := s.await(ctx, redis); err != nil {
		return err
	}
	environment := []string{
		"RUNTIME_ROOT=" + all.dir, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_APPDIRECTORY=config", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis, "USE_STATSD=false", "LOG_LEVEL=error",
		"HOST=127.0.0.1", "PORT=" + port(s.http), "GRPC_HOST=127.0.0.1", "GRPC_PORT=" + port(s.grpc),
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + port(s.profiles),
	}
	if err := s.run(all.dir, environment, program); err != nil {
		return err
	}
	return s.await(ctx, s.grpc, s.http, s.profiles)
}

// run starts a process of s in dir. The process gets only the given environment.
func (s *server) run(dir string, environment []string, program string, args ...string) error {
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, args...) //nolint:gosec // the user of this tool chooses the programs
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append([]string{"PATH=" + os.Getenv("PATH")}, environment...), log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.started = append(s.started, cmd)
	return nil
}

// await waits until something listens at all addresses, for at most 30 seconds.
func (s *server) await(ctx context.Context, addresses ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, a := range addresses {
		for {
			conn, err := net.Dial("tcp", a)
			if err == nil {
				_ = conn.Close() // an error does not matter, because the connection was not used
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s does not start: %w", filepath.Base(s.started[len(s.started)-1].Path), err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// stop kills the processes and removes their files.
func (all *servers) stop() error {
	for _, s := range []*server{all.empty, all.cellserver, all.ratelimit} {
		if s == nil {
			continue
		}
		for _, c := range s.started {
			_ = c.Process.Kill() // the process stores nothing, so it can be killed
			_ = c.Wait()         // the error only says that the process was killed
		}
	}
	return os.RemoveAll(all.dir)
}

// sight is the resource usage of a server up to an instant.
type sight struct {
	at      time.Time
	cpu     time.Duration // processor time of all its processes
	mallocs int64         // number of allocations of its process in Go
}

// look returns what s has used so far. The request for the allocations needs time of the server, so the time comes first at the
// end of a turn, and last at its beginning.
func (s *server) look(ctx context.Context, end bool) (now sight, err error) {
	count := func() (err error) {
		now.mallocs, err = s.mallocs(ctx)
		return err
	}
	if !end {
		if err := count(); err != nil {
			return now, err
		}
	}
	for _, c := range s.started {
		u, err := process.Of(c.Process.Pid)
		if err != nil {
			return now, err
		}
		now.cpu += u.CPU
	}
	now.at = time.Now()
	if end {
		err = count()
	}
	return now, err
}

// mallocsLine is the line of a profile with the number of allocations.
var mallocsLine = regexp.MustCompile(`(?m)^# Mallocs = (\d+)$`)

// mallocs returns the number of allocations since the start, which the profile of allocations ends with.
func (s *server) mallocs(ctx context.Context) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.profiles+"/debug/pprof/allocs?debug=1", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return 0, err
	}
	found := mallocsLine.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s: no number of allocations in %q", answer.Status, text[:min(len(text), 100)])
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}
