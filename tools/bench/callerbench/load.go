package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
)

// users is how many keys the load chooses from.
const users = 1000

// app is a running application.
type app struct{ address string }

// figures are the results of one turn.
type figures struct {
	perSecond float64 // requests per second
	cpu       float64 // processor time of the application in microseconds per request
	mallocs   float64 // allocations of the application per request
}

// get makes a request, and returns the body of its response.
func (a *app) get(ctx context.Context, by http.RoundTripper, path, user string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set(keyOf, user)
	answer, err := by.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return body, err
}

// used returns what the application has used so far.
func (a *app) used(ctx context.Context) (u used, err error) {
	body, err := a.get(ctx, http.DefaultTransport, "/used", "")
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(body, &u)
}

// turn makes requests, and returns the figures of the time that counts.
func (a *app) turn(ctx context.Context, o *options) (f figures, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.callers, MaxConnsPerHost: o.callers}
	defer transport.CloseIdleConnections()
	var calls atomic.Int64
	var ended atomic.Bool
	var running sync.WaitGroup
	failed := make(chan error, o.callers)
	for range o.callers {
		running.Go(func() {
			for !ended.Load() {
				if _, err := a.get(ctx, transport, "/", "user"+strconv.Itoa(rand.N(users))); err != nil {
					failed <- err
					return
				}
				calls.Add(1)
			}
		})
	}
	defer func() {
		ended.Store(true)
		running.Wait()
	}()
	wait := func(d time.Duration) error {
		select {
		case err := <-failed:
			return err
		case <-time.After(d):
			return ctx.Err()
		}
	}
	if err := wait(o.warmup); err != nil {
		return f, err
	}
	before, err := a.used(ctx)
	if err != nil {
		return f, err
	}
	counted, began := calls.Load(), time.Now()
	for d := o.span; ; d = time.Millisecond { // on a machine that is very busy longer, until there is a figure
		if err := wait(d); err != nil {
			return f, err
		}
		if calls.Load() > counted {
			break
		}
	}
	n, took := float64(calls.Load()-counted), time.Since(began)
	after, err := a.used(ctx)
	if err != nil {
		return f, err
	}
	return figures{
		perSecond: n / took.Seconds(),
		cpu:       float64(after.CPU-before.CPU) / float64(time.Microsecond) / n,
		mallocs:   float64(after.Mallocs-before.Mallocs) / n,
	}, nil
}

// write writes a table in Markdown: medians of all rounds, with the least and the greatest. The last columns are what clients/go adds
// to an application without a limiter, divided by what the contender of the line adds, round by round.
func write(w io.Writer, turns [][]figures) error {
	index := map[string]int{}
	for i, c := range contenders {
		index[c.name] = i
	}
	added := func(i, round int) float64 { return turns[i][round].cpu - turns[index[none]][round].cpu }
	divided := func(by string) func(i, round int) float64 {
		return func(i, round int) float64 { return added(index[by], round) / added(i, round) }
	}
	columns := []struct {
		head string
		all  bool // also of the application without a limiter
		of   func(i, round int) float64
	}{
		{"requests/s", true, func(i, round int) float64 { return turns[i][round].perSecond }},
		{"CPU, µs per request", true, func(i, round int) float64 { return turns[i][round].cpu }},
		{"added", false, added},
		{"allocations per request", true, func(i, round int) float64 { return turns[i][round].mallocs }},
		{goRedis + " ÷ this, added CPU", false, divided(goRedis)},
		{overQueue + " ÷ this, added CPU", false, divided(overQueue)},
	}
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range columns {
		b.WriteString(" " + c.head + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for i, c := range contenders {
		b.WriteString("| " + c.name + " |")
		for _, col := range columns {
			if c.name == none && !col.all {
				b.WriteString(" |")
				continue
			}
			values := make([]float64, len(turns[i]))
			for round := range values {
				values[round] = col.of(i, round)
			}
			b.WriteString(" " + report.Spread(loadgen.NewSpread(values)) + " |")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
