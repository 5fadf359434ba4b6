package inproc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// AdminPort is the number of the admin port of a server that [World.StartAdmin] has started.
const AdminPort = 9121

// Operated is a node with an admin port, and the HTTP client of an operator.
type Operated struct {
	*Node
	http *http.Client
}

// StartAdmin does the same as [World.Start] for a server with an admin port.
func (w *World) StartAdmin(options ...string) *Operated {
	w.t.Helper()
	return w.StartAdminWith(nil, options...)
}

// StartAdminWith does the same as [World.StartWith] for a server with an admin port.
func (w *World) StartAdminWith(setup func(*server.Options), options ...string) *Operated {
	w.t.Helper()
	n := w.StartWith(setup, append([]string{"--admin-port", strconv.Itoa(AdminPort)}, options...)...)
	return &Operated{n, w.HTTP(n.Host)}
}

// URL returns the URL of path on the admin port.
func (o *Operated) URL(path string) string {
	return "http://" + o.AdminAddr().String() + path
}

// Ask sends r to the admin port and returns the status and the body of the response. err is an
// error of HTTP itself.
func (o *Operated) Ask(r *http.Request) (status int, body string, err error) {
	answer, err := o.http.Do(r)
	if err != nil {
		return 0, "", err //nolint:wrapcheck // the error says what failed
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err //nolint:wrapcheck // the error says what failed
}

// Get sends a GET request for path as the given user, or without authentication if user is "". It
// fails the test if there is no response.
func (o *Operated) Get(path, user, password string) (status int, body string) {
	t := o.world.t
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL(path), nil)
	require.NoError(t, err)
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	status, body, err = o.Ask(r)
	require.NoError(t, err)
	return status, body
}

// RunHeaders returns the headers that a request to run a command must have.
func RunHeaders() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "X-Cellserver-Action": {"1"}}
}

// Post sends a request with header and body to run a command.
func (o *Operated) Post(header http.Header, body string) (status int, answer string, err error) {
	t := o.world.t
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.URL("/api/v1/run"), strings.NewReader(body))
	require.NoError(t, err)
	r.Header = header.Clone()
	return o.Ask(r)
}

// Series returns the values of all metrics, by name and labels. It fails the test if a series
// occurs twice.
func (o *Operated) Series() map[string]string {
	t := o.world.t
	t.Helper()
	status, body := o.Get("/metrics", "", "")
	require.Equal(t, 200, status, body)
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^(cellserver_\S*?(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(body, -1) {
		require.NotContains(t, all, m[1])
		all[m[1]] = m[2]
	}
	return all
}

// StepAdmin does the same as [Step] for a server with an admin port, for tests of scripts that
// never wait. It also returns a function that sends a GET request for a path to that port.
func StepAdmin(tb testing.TB, options ...string) (*Stepped, func(path string) (status int, body string)) {
	tb.Helper()
	network := simnet.New()
	l, err := network.Listen("127.0.0.1:0")
	require.NoError(tb, err)
	s := StepWith(tb, func(o *server.Options) { o.AdminListeners = []net.Listener{l} }, options...)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return network.Dial(ctx, "127.0.0.1", address)
		},
	}}
	return s, func(path string) (int, string) {
		r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
		require.NoError(tb, err)
		answer, err := client.Do(r)
		require.NoError(tb, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(tb, errors.Join(err, answer.Body.Close()))
		return answer.StatusCode, string(body)
	}
}
