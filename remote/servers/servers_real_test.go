//go:build real

package servers_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/records"
	"github.com/cellserver/cellserver/remote/servers"
)

// TestScriptOnEngines plays the random beats on each kind of engine.
func TestScriptOnEngines(t *testing.T) {
	storetest.Each(t, func(t *testing.T, en storetest.Engine) {
		at, err := engine.ParseAddress(en.Single(t, storetest.Options{}).URL())
		require.NoError(t, err)
		start := time.Now()
		e, err := engine.Open(engine.Options{
			Address: at, Prefix: "cs:", Hidden: records.KeyPrefix, Timeout: time.Second,
			Elapsed: func() time.Duration { return time.Since(start) },
		})
		require.NoError(t, err)
		t.Cleanup(e.Close)
		storetest.Await(t, "the engine answers", func() error {
			_, err := e.Eval(context.Background(), "return 1", []string{"a"}, nil)
			return err
		})
		eval := func(script string, keys, args []string) any {
			reply, err := e.Eval(t.Context(), script, keys, args)
			require.NoError(t, err)
			return reply
		}
		for seed := range uint64(40) {
			eval("return redis.call('DEL', KEYS[1])", []string{servers.Key}, nil)
			play(t, rand.New(rand.NewPCG(seed, 2)), eval, time.Now)
		}
		playSummaries(t, eval)
	})
}
