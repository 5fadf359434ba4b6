package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// awaitHealthy returns when the text at url, the clusters of Envoy, says that the health check has found the server.
func awaitHealthy(ctx context.Context, url string) error {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	for {
		body, err := get(ctx, url, "")
		for line := range strings.Lines(body.text) {
			if strings.HasPrefix(line, "rls::") && strings.HasSuffix(line, "::health_flags::healthy\n") {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Envoy does not find the server: %w, %w", ctx.Err(), err) //nolint:staticcheck // a name
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// response is a response with its text.
type response struct {
	status int
	text   string
}

// get sends a GET of a tenant, or of none if tenant is "".
func get(ctx context.Context, url, tenant string) (response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return response{}, err
	}
	if tenant != "" {
		q.Header.Set("X-Tenant", tenant)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return response{}, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return response{r.StatusCode, string(text)}, err
}

// tenants are the callers of the page.
var tenants = []string{"acme", "globex"}

// perSecond is the number of requests that each tenant sends in a second.
const perSecond = 50

// counts has the numbers of responses of a tenant by their status.
type counts struct{ ok, denied, failed atomic.Int64 }

// call sends requests of a tenant until ctx ends.
func (c *counts) call(ctx context.Context, url, tenant string) {
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch r, err := get(ctx, url, tenant); {
		case ctx.Err() != nil:
		case err != nil:
			c.failed.Add(1)
		case r.status == http.StatusOK:
			c.ok.Add(1)
		case r.status == http.StatusTooManyRequests:
			c.denied.Add(1)
		default:
			c.failed.Add(1)
		}
	}
}

// since returns the numbers since the last call, as a text.
func (c *counts) since() string {
	return fmt.Sprintf("%4d x 200  %4d x 429  %4d failed", c.ok.Swap(0), c.denied.Swap(0), c.failed.Swap(0))
}

// step is a command of redis-cli, and a text about its effect. A step without a command only lets
// the load run.
type step struct{ command, shows string }

// steps are the demonstration. The rules allow each tenant 100 requests in a minute, so the first step raises the limit.
var steps = []step{
	{"RL.OVERRIDE SET rls.shop.tenant * LIMITS SW 6000 60 FIXED", "All tenants may send 6000 requests per minute."},
	{"RL.BLOCK rls.shop.tenant acme EX 3600 REASON loop", "acme is blocked:"},
	{"RL.EXPLAIN rls.shop.tenant acme", "The reason:"},
	{"RL.UNBLOCK rls.shop.tenant acme", "acme is released:"},
	{"RL.OVERRIDE SET rls.shop.tenant acme LIMITS SW 10 1 FIXED", "acme may send 10 requests per second:"},
	{"RL.OVERRIDE DEL rls.shop.tenant acme", "acme has the limit of all tenants again:"},
}

// play runs the load and the steps, and prints a line for each tenant after each step.
func (g *gateway) play(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	all := make([]counts, len(tenants))
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	fmt.Fprintf(g.w, "Each tenant (x-tenant: %s) sends %d requests per second to http://%s/\n", strings.Join(tenants, ", "), perSecond, g.envoy)
	for i, s := range steps {
		if err := g.cli(ctx, s); err != nil {
			return err
		}
		if i == 0 {
			for k, tenant := range tenants {
				work.Go(func() { all[k].call(ctx, "http://"+g.envoy+"/", tenant) })
			}
		}
		for k := range all {
			all[k].since()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(g.pause):
		}
		for k, tenant := range tenants {
			fmt.Fprintf(g.w, "  %-7s %s\n", tenant, all[k].since())
		}
	}
	return nil
}

// cli runs the command of a step by redis-cli, and prints the first lines of its reply.
func (g *gateway) cli(ctx context.Context, s step) error {
	host, port, err := net.SplitHostPort(g.server)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "redis-cli", append([]string{"-h", host, "-p", port}, strings.Fields(s.command)...)...) //nolint:gosec // a step
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("redis-cli %s: %w\n%s", s.command, err, said)
	}
	first := said
	if lines := bytes.SplitAfterN(said, []byte("\n"), 3); len(lines) > 2 {
		first = lines[1] // the second line of RL.EXPLAIN is its sentence
	}
	fmt.Fprintf(g.w, "\n%s\n$ redis-cli %s\n%s\n", s.shows, s.command, bytes.TrimSpace(first))
	return nil
}
