package web_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/login"
	"github.com/cellserver/cellserver/front/web"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/resp"
)

// port is a Server whose calls a session decides, and what its clients have asked.
type port struct {
	*web.Server
	fed     *inproc.Fed
	users   []string        // those for which callers were opened
	asked   []string        // all commands
	limits  []web.Limit     // those of all keys
	blocked map[string]bool // the keys with a block
	refusal resp.Error      // refuses all callers, unless it is ""
	reply   string          // replaces all replies, unless it is ""
}

var minute = []web.Limit{{Window: time.Minute}}

// newPort returns a port with the users ann, whose password is a, and free, which needs none. setup changes the
// configuration.
func newPort(t testing.TB, setup func(c *web.Config)) *port {
	t.Helper()
	users := acl.NewUsers(command.NewTable(commands.Groups()))
	for name, rules := range map[string][]string{"ann": {"on", ">a", "+rl.use", "~*"}, "off": {"off", ">o"}, "free": {"on", "nopass", "+rl.use", "~*"}} {
		_, _, err := users.Set(name, rules)
		require.NoError(t, err)
	}
	p := &port{fed: inproc.Open(t), limits: minute, blocked: map[string]bool{}}
	c := web.Config{
		Open:      func(web.Peer) (web.Caller, error) { return caller{p}, nil },
		Door:      login.New(users, nil),
		Certified: func(is *tls.ConnectionState) (string, bool) { return is.PeerCertificates[0].Subject.CommonName, true },
		User:      func() (string, bool) { return "default", true },
		Limits: func(policy, key []byte, dst []web.Limit) ([]web.Limit, bool, bool) {
			return append(dst, p.limits...), p.blocked[string(key)], string(policy) != "unknown"
		},
		Style: headers.Draft,
	}
	if setup != nil {
		setup(&c)
	}
	p.Server = web.New(c)
	return p
}

// caller is a Caller whose commands a session runs.
type caller struct{ p *port }

func (c caller) Do(commands []byte, replies int, out []byte) ([]byte, error) {
	c.p.asked = append(c.p.asked, words(string(commands)))
	if c.p.reply != "" {
		return append(out, c.p.reply...), nil
	}
	return append(out, c.p.fed.Packet(commands)...), nil
}

func (c caller) Login(user string) error {
	if c.p.refusal != "" {
		return c.p.refusal
	}
	c.p.users = append(c.p.users, user)
	return nil
}

func (c caller) Close() {}

// words returns the words of a command.
func words(command string) string {
	var all []string
	for i, line := range strings.Split(command, "\r\n") {
		if i%2 == 0 && i > 0 {
			all = append(all, line)
		}
	}
	return strings.Join(all, " ")
}

// conn is a connection from an address.
type conn struct {
	net.Conn
	from string
}

func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from)) }
func (*conn) LocalAddr() net.Addr    { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
func (*conn) Close() error           { return nil }

// ask sends a request from the address 127.0.0.1. change changes it.
func (p *port) ask(t *testing.T, method, target, body string, change func(r *http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:7"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	p.ServeFrom(&conn{from: r.RemoteAddr}, w, r)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	if w.Code >= 400 {
		require.Equal(t, headers.ProblemType, w.Header().Get("Content-Type"), w.Body.String())
	}
	return w
}

// use sends a call as JSON.
func (p *port) use(t *testing.T, body string, change func(r *http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	return p.ask(t, "POST", "/v1/use", body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		if change != nil {
			change(r)
		}
	})
}

// field returns a header field of a response in its spelling.
func field(w *httptest.ResponseRecorder, name string) string {
	return strings.Join(w.Header()[name], ", ")
}

// certificate makes a request one with the verified certificate of a user.
func certificate(name string) func(r *http.Request) {
	return func(r *http.Request) {
		c := &x509.Certificate{}
		c.Subject.CommonName = name
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	}
}

// basic adds credentials to a request.
func basic(name, password string) func(r *http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}
