package login_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/front/login"
	"github.com/cellserver/cellserver/internal/bubble"
)

// guard is a Limiter that has seen some failed logins, and what it was told.
type guard struct {
	wait    time.Duration
	refused bool
	mu      sync.Mutex
	judged  []bool // guarded by mu
}

func (g *guard) Attempt(string, string) (time.Duration, bool, func(*acl.User, bool)) {
	return g.wait, g.refused, func(_ *acl.User, ok bool) {
		g.mu.Lock()
		g.judged = append(g.judged, ok)
		g.mu.Unlock()
	}
}

func door(t *testing.T, l login.Limiter) *login.Door {
	users := acl.NewUsers(command.NewTable(commands.Groups()))
	for name, rules := range map[string][]string{"default": {"resetpass", ">secret"}, "ann": {"on", ">a"}, "off": {"off", ">o"}} {
		_, _, err := users.Set(name, rules)
		require.NoError(t, err)
	}
	return login.New(users, l)
}

func TestLogin(t *testing.T) {
	g := &guard{}
	for _, d := range []*login.Door{door(t, nil), door(t, g)} {
		for _, row := range []struct{ name, password, user string }{
			{"ann", "a", "ann"},
			{"", "secret", "default"},
			{"default", "secret", "default"},
			{"ann", "b", ""},
			{"ann", "", ""},
			{"off", "o", ""},
			{"nobody", "a", ""},
		} {
			u, refused := d.Login(t.Context(), row.name, row.password, "192.0.2.1")
			require.False(t, refused)
			require.Equal(t, row.user != "", u != nil, row.name)
			if u != nil {
				require.Equal(t, row.user, u.Name)
			}
		}
	}
	require.Equal(t, []bool{true, true, true, false, false, false, false}, g.judged)
	g.refused = true
	u, refused := door(t, g).Login(t.Context(), "ann", "a", "192.0.2.1")
	require.Nil(t, u)
	require.True(t, refused)
	require.Len(t, g.judged, 7, "the password was not checked")
}

// TestLoginsWait checks that logins wait after failed ones, and how the waits end.
func TestLoginsWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d, began := door(t, &guard{wait: time.Minute}), time.Now()
		u, _ := d.Login(t.Context(), "ann", "a", "")
		require.NotNil(t, u)
		require.Equal(t, time.Minute, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool, 100)
		for range 16 {
			go func() {
				_, refused := d.Login(ctx, "ann", "a", "")
				ended <- refused
			}()
		}
		synctest.Wait()
		_, refused := d.Login(t.Context(), "ann", "a", "")
		require.True(t, refused, "too many wait")
		cancel()
		for range 16 {
			require.False(t, <-ended)
		}
		began = time.Now()
		d.Stop()
		d.Stop()
		_, refused = d.Login(t.Context(), "ann", "a", "")
		require.False(t, refused)
		require.Zero(t, time.Since(began))
	})
}
