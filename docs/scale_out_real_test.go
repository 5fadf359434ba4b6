//go:build real

package docs_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/server"
)

// aclLine is the line of the page that makes the user.
var aclLine = regexp.MustCompile(`(?m)^ACL SETUSER cellserver (.*)$`)

// TestScaleOutUserHasTheRightsThatServersNeed makes the user of the page, and has a server
// use all that it serves, on a cluster. The nodes refuse nothing, and refuse something as
// soon as one of the rights is taken away.
func TestScaleOutUserHasTheRightsThatServersNeed(t *testing.T) {
	if testing.Short() {
		t.Skip("real nodes are left to the full test run")
	}
	line := aclLine.FindStringSubmatch(scaleOut(t))
	require.NotNil(t, line)
	storetest.Each(t, func(t *testing.T, e storetest.Engine) { needsRights(t, e, line[1]) })
}

// needsRights gives a user the rights and takes each of them away once.
func needsRights(t *testing.T, e storetest.Engine, given string) {
	t.Helper()
	c := e.Cluster(t, 3, 3, storetest.Options{}) // replicas, for WAIT
	words := []any{"ACL", "SETUSER", "cellserver"}
	var rights []string
	for _, w := range strings.Fields(given) {
		words = append(words, w)
		if right, is := strings.CutPrefix(w, "+"); is {
			rights = append(rights, right)
		}
	}
	onAll := func(words ...any) {
		for _, n := range c.Masters {
			n.Do(words...)
		}
	}
	onAll(words...)
	refused := func() (all string) {
		for _, n := range c.Masters {
			all += fmt.Sprint(n.Do("ACL", "LOG"))
		}
		return strings.ReplaceAll(all, "[]", "")
	}
	_, nodes, _ := strings.Cut(c.URL(), "://")
	url := "redis://cellserver:secret@" + nodes
	require.NoError(t, useAll(t, url, "30000", func() bool { return false }))
	require.Empty(t, refused())
	for _, right := range rights {
		if right == "asking" {
			continue // for slots that move
		}
		onAll("ACL", "SETUSER", "cellserver", "-"+right)
		onAll("SCRIPT", "FLUSH")
		_ = useAll(t, url, "500", func() bool { return refused() != "" }) // it has not all it needs
		require.NotEmpty(t, refused(), "servers do without %s", right)
		onAll("ACL", "SETUSER", "cellserver", "+"+right)
		onAll("ACL", "LOG", "RESET")
	}
}

// useAll starts two servers that have their limits at the URL, and calls what they serve, unless
// refused says before the first decision that nothing will come of it.
func useAll(t *testing.T, url, timeout string, refused func() bool) error {
	t.Helper()
	one, stop := serving(t, url, timeout)
	defer stop()
	subscribed := func() bool {
		info, err := one("INFO store")
		return err == nil && strings.Contains(info, "store_policies_subscribed:1\r\n")
	}
	works := func(call func(words string) (string, error), words string) bool {
		_, err := call(words)
		return err == nil
	}
	require.Eventually(t, func() bool { return works(one, "CL.THROTTLE first 1 1 60") || refused() }, time.Minute, time.Millisecond)
	for _, call := range []string{
		"FLUSHDB", "CL.THROTTLE k 15 30 60", "GET k", "SW.ALLOW w 10 60", "TB.ACQUIRE b 10 10 60", "CC.ACQUIRE c 5 30 one", "CC.RELEASE c one",
		"RL.MULTI 2 {t}a {t}b TB 10 10 1 SW 1000 86400", "RL.MULTI 2 m n TB 10 10 1 SW 1000 86400", "TTL k", "EXPIRE k 100", "TYPE w",
		"RL.INFO w", "SCAN 0", "DBSIZE", "DEL k w b c", "FLUSHDB", "RL.POLICY SET api LIMITS SW 10 60 TB 10 10 60", "RL.USE api k", "RL.BLOCK api k", "RL.UNBLOCK api k",
	} {
		if _, err := one(call); err != nil {
			return err
		}
	}
	require.Eventually(t, func() bool { return subscribed() || refused() }, time.Minute, time.Millisecond)
	// A change of another server is read from the log.
	other, stopOther := serving(t, url, timeout)
	defer stopOther()
	require.Eventually(t, func() bool { return works(other, "RL.POLICY SET web LIMITS SW 10 60") || refused() }, time.Minute, time.Millisecond)
	_, err := one("RL.POLICY DEL web")
	return err
}

// serving starts a server that has its limits at the URL. call makes a call of it, and stop ends it.
func serving(t *testing.T, url, timeout string) (call func(words string) (reply string, err error), stop func()) {
	t.Helper()
	c, err := config.Load([]string{"--store", url, "--dir", t.TempDir(), "--store-timeout", timeout}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := server.New(c, server.Options{Listeners: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	client := redis.NewClient(&redis.Options{Addr: l.Addr().String(), MaxRetries: -1, ReadTimeout: time.Minute, DisableIdentity: true})
	stop = func() {
		require.NoError(t, client.Close())
		cancel()
		require.NoError(t, <-ended)
	}
	return func(text string) (string, error) {
		var words []any
		for _, w := range strings.Fields(text) {
			words = append(words, w)
		}
		reply, err := client.Do(ctx, words...).Result()
		if err != nil && err != redis.Nil { //nolint:errorlint // it is never wrapped
			return "", fmt.Errorf("%s: %w", text, err)
		}
		return fmt.Sprint(reply), nil
	}, stop
}
