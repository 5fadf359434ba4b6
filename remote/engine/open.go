package engine

import (
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/redis/go-redis/v9"
)

// Open returns an engine that begins to connect in the background. It does not wait: requests fail
// with the reason Starting until the nodes and their time are known. The error says which option is
// missing, or which file cannot be used. The caller must call [Engine.Close].
func Open(o Options) (*Engine, error) {
	if o.Address == nil || o.Elapsed == nil || o.Timeout <= 0 {
		return nil, errors.New("an engine needs an address, a time limit and a stopwatch")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxValue <= 0 {
		o.MaxValue = 1 << 20
	}
	d, err := newDialer(o.Address.TLS, o.Timeout)
	if err != nil {
		return nil, err
	}
	if o.Dial != nil {
		d.connect = o.Dial
	}
	if o.Address.TLS != nil && o.Address.TLS.SkipVerify {
		o.Log.Warn("certificates of the store are not verified: any server that answers is trusted")
	}
	e := &Engine{
		o: o, dial: d, stale: make(chan struct{}, 1), refused: newQueue(0), stop: make(chan struct{}),
		nodes: map[string]*node{}, contacts: map[string]*redis.Client{},
		sentinels: map[string]*redis.SentinelClient{}, versions: map[string]inspection{},
	}
	e.clock.MaxSkew = o.MaxSkew
	e.clock.OnJump = func(by time.Duration) {
		o.Log.Warn("the store's clock jumped; it is followed slowly, and a restart takes it over at once", "by", by)
	}
	e.tasks = newTasks()
	e.done.Go(e.answerRefused)
	e.done.Go(e.follow)
	return e, nil
}

// Close ends the goroutines of the engine and waits for them. Requests that were submitted before
// are answered. A second call returns at once.
func (e *Engine) Close() {
	if e.closing.Swap(true) {
		return
	}
	close(e.stop)
	e.tasks.close()
	e.mu.Lock()
	nodes := maps.Clone(e.nodes)
	e.mu.Unlock()
	for _, n := range nodes {
		e.ending.Go(n.close)
	}
	e.mu.Lock()
	for _, c := range e.contacts {
		_ = c.Close()
	}
	for _, c := range e.sentinels {
		_ = c.Close()
	}
	e.mu.Unlock()
	e.ending.Wait()
	e.later.Wait()
	e.refused.close()
	e.done.Wait()
}
