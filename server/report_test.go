package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/server"
)

// TestRefusedCallsAreNoDecisions: calls that do not run, or end in an error, are neither allowed
// nor denied, and hide nothing else.
func TestRefusedCallsAreNoDecisions(t *testing.T) {
	o := operate(t)
	look := func(path string, to any) {
		status, body := o.get(path, "", "")
		require.Equal(t, 200, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), to), body)
	}
	allowed := func() (sum int64) {
		var history struct{ Allowed []int64 }
		look("/api/v1/history?span=300", &history)
		for _, n := range history.Allowed {
			sum += n
		}
		return sum
	}
	c := o.dial()
	for range 10 {
		c.command("CL.THROTTLE", "api:1", "99", "1", "60")
		require.Contains(t, c.reply(), ":100\r\n")
	}
	o.clock.Advance(time.Second)
	eventually(t, "the decisions are seen", func() bool { return allowed() == 10 })
	require.Equal(t, "+OK\r\n", c.do("ACL", "SETUSER", "low", "on", "nopass", "+ping", "+auth"))
	require.Equal(t, "+OK\r\n", c.do("AUTH", "low", "any"))
	for range 20 {
		require.Contains(t, c.do("CL.THROTTLE", "api:1", "99", "1", "60"), "-NOPERM")
	}
	other := o.dial()
	for range 5 {
		require.Contains(t, other.do("CL.THROTTLE", "api:1", "none", "1", "60"), "-Cell error")
	}
	o.clock.Advance(time.Second)
	eventually(t, "the errors are seen", func() bool {
		var overview struct {
			Checks []struct {
				ID    string
				Value float64
			}
		}
		look("/api/v1/overview", &overview)
		for _, check := range overview.Checks {
			if check.ID == "errors" {
				return check.Value > 0
			}
		}
		return false
	})
	require.EqualValues(t, 10, allowed())
}

// TestReportsNameTheServerInLines: a line that is copied reaches this server and no other.
func TestReportsNameTheServerInLines(t *testing.T) {
	o := operate(t)
	status, body := o.get("/api/v1/key?db=2&key=api:1", "", "")
	require.Equal(t, 200, status, body)
	require.Contains(t, body, fmt.Sprintf(`"line":"redis-cli -p %d -n 2 DEL api:1"`, o.Addr().(*net.TCPAddr).Port))
}

// TestLinesReachTheServerAsTheUser: with host, port, TLS and name, as far as these are not those
// that redis-cli takes by itself.
func TestLinesReachTheServerAsTheUser(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	c, err := config.Load([]string{"--dir", t.TempDir(), "--requirepass", "secret", "--protected-mode", "no"}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	a, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := server.New(c, server.Options{Clock: clocktest.New(epoch), Listeners: []net.Listener{l}, AdminListeners: []net.Listener{a}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	defer func() {
		s.Stop()
		require.NoError(t, <-done)
	}()
	eventually(t, "loaded", func() bool { return !s.Engine().Loading() })
	o := &operated{s, t, nil, nil}
	port := l.Addr().(*net.TCPAddr).Port
	admin := dial(t, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.Equal(t, okReply, admin.do("AUTH", "secret"))
	require.Equal(t, okReply, admin.do("ACL", "SETUSER", "ann&o", "on", ">a", "~*", "+@all"))
	for user, options := range map[string]string{"default": "--askpass", "ann&o": `--user 'ann\u0026o' --askpass`} { // as JSON has it
		status, body := o.get("/api/v1/key?db=2&key=api:1", user, map[string]string{"default": "secret", "ann&o": "a"}[user])
		require.Equal(t, 200, status, body)
		require.Contains(t, body, fmt.Sprintf(`"line":"redis-cli -h %s -p %d %s -n 2 DEL api:1"`, host, port, options))
	}
}

// TestTheLockedOutAreCounted: connections that could not log in as the user, and no others that
// have yet to log in.
func TestTheLockedOutAreCounted(t *testing.T) {
	o := operate(t, "--requirepass", "secret")
	admin := o.dial()
	require.Equal(t, okReply, admin.do("AUTH", "secret"))
	require.Equal(t, okReply, admin.do("ACL", "SETUSER", "app", "on", ">new", "+@all"))
	for range 7 {
		o.dial() // says nothing
	}
	var clients [4]*client
	for i := range clients {
		clients[i] = o.dial()
		for range 2 { // ten failures of an address are answered at once
			require.Contains(t, clients[i].do("AUTH", "app", "old"), "-WRONGPASS")
		}
	}
	require.NoError(t, clients[0].Close()) // and another comes for it
	eventually(t, "it is gone", func() bool { open, _ := o.Engine().CountClients(); return open == 11 })
	again := o.dial()
	for range 2 {
		require.Contains(t, again.do("AUTH", "app", "old"), "-WRONGPASS")
	}
	o.dial().command("AUTH", "wrong")
	o.clock.Advance(time.Second)
	eventually(t, "it is said", func() bool {
		_, body := o.get("/api/v1/overview", "default", "secret")
		return strings.Contains(body, `"title":"4 clients of app cannot log in since`)
	})
}

// TestAScriptThatKeepsEverybodyWaitingIsLogged once, with its digest and client.
func TestAScriptThatKeepsEverybodyWaitingIsLogged(t *testing.T) {
	f := start(t, "auto", "--busy-reply-threshold", "1")
	c := dial(t, "tcp", f.addr)
	id := strings.Trim(c.do("CLIENT", "ID"), ":\r\n")
	c.command("EVAL", "while true do end", "0")
	other := dial(t, "tcp", f.addr)
	f.runsAlone()
	f.clock.Advance(time.Second) // beyond the threshold
	logged := regexp.MustCompile(`level=WARN msg="a script keeps everybody waiting.* script=694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7 id=` + id + ` runs_for=`)
	eventually(t, "it is logged", func() bool { return logged.MatchString(f.log.String()) })
	eventually(t, "it is killed", func() bool { return other.do("SCRIPT", "KILL") == "+OK\r\n" })
	require.Contains(t, c.reply(), "-ERR")
	require.Equal(t, 1, strings.Count(f.log.String(), "keeps everybody waiting"))
}
