//go:build real

package docs_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/server"
)

// gateway is a program in front of an application that asks http-port, and what the page says about it.
type gateway struct {
	program string
	args    []string
	files   []string // those of the page, in examples/gateways
	// changes are pairs of texts of the files and what the test has in their place: addresses, in which PORT is the port
	// of the gateway, and folders.
	changes []string
	// kind is the option http-gateway; "none" if the gateway sends nothing about the original request.
	kind string
	// fault, away and hangs are the statuses if there is no such policy, if the server is away, and if it never answers.
	fault, away, hangs int
}

var gateways = []gateway{
	{
		program: "nginx", args: []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; pid nginx.pid; error_log stderr;"},
		files: []string{"nginx.conf"},
		changes: []string{
			"listen 80;", "listen 127.0.0.1:PORT;",
			"http {\n", "http {\naccess_log off; client_body_temp_path 1; proxy_temp_path 2; fastcgi_temp_path 3; uwsgi_temp_path 4; scgi_temp_path 5;\n",
		},
		kind: "nginx", fault: 500, away: 200, hangs: 200,
	},
	{
		program: "haproxy", args: []string{"-db", "-f", "haproxy.cfg"},
		files:   []string{"haproxy.cfg", "haproxy-check.lua"},
		changes: []string{"bind :80\n", "bind 127.0.0.1:PORT\n", "abns@limits", "abns@limits-PORT"},
		kind:    "none", fault: 500, away: 200, hangs: 200,
	},
	{
		program: "caddy", args: []string{"run", "--config", "Caddyfile", "--adapter", "caddyfile"},
		files:   []string{"Caddyfile"},
		changes: []string{":80 {", "http://:PORT {\n\tbind 127.0.0.1", "{\n\tservers", "{\n\tadmin off\n\tservers"},
		kind:    "caddy", fault: 404, away: 502, hangs: 504,
	},
}

// patient changes how long gateways wait for an answer, since a busy machine must not fail the test.
var patient = []string{"50ms", "60s", "timeout = 200,", "timeout = 60000,"}

// gatewayClient is the address of the client. It is not the one from which gateways ask, which is a trusted proxy.
const gatewayClient = "127.0.0.9"

// gatewayTest is a gateway that runs, with the server before it and the application behind it.
type gatewayTest struct {
	*testing.T
	server *inproc.Served
	redis  *inproc.Client
	client *http.Client
	url    string
	mu     sync.Mutex
	passed []string // guarded by mu: the requests that the application got
}

// TestGateways runs each gateway with the files of the page.
func TestGateways(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts programs")
	}
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin") // where Debian has nginx and HAProxy
	for i := range gateways {
		g := &gateways[i]
		t.Run(g.program, func(t *testing.T) {
			t.Run("requests", func(t *testing.T) { g.requests(g.start(t, "KEY IP 32 56 ", "")) })
			t.Run("statuses", func(t *testing.T) { g.statuses(g.start(t, "KEY IP 32 56 ", "")) })
			t.Run("hangs", g.hanging)
			if g.kind != "none" {
				t.Run("original request", func(t *testing.T) { g.originals(g.start(t, "", "&key=method&key=host&key=uri")) })
			}
		})
	}
}

// start starts a server with a policy, an application, and the gateway. policy is what the policy has before its limits, and
// parts are added to the key of the check.
func (g *gateway) start(t *testing.T, policy, parts string) *gatewayTest {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, number, err := net.SplitHostPort(port.Addr().String())
	require.NoError(t, err)
	r := &gatewayTest{T: t}
	r.server = inproc.ServeWith(t, "goroutine", func(o *server.Options) {
		o.Clock, o.Inherited = clocktest.New(midnight), map[string][]net.Listener{"http-port": {port}}
	}, "--http-port", number, "--http-gateway", g.kind, "--http-trusted-proxies", "127.0.0.1")
	r.redis = r.server.Dial()
	r.redis.Set("RL.POLICY SET api " + policy + "LIMITS SW 2 60 FIXED")
	g.run(r, port.Addr().String(), append([]string{"key=ip", "key=ip" + parts}, patient...)...)
	return r
}

// run starts the application, and the gateway with the address of http-port and further changes to its files.
func (g *gateway) run(r *gatewayTest, limits string, changes ...string) {
	r.Helper()
	program := programs.Find(r, g.program)
	application := httptest.NewServer(r)
	r.Cleanup(application.Close)
	dir, own := r.TempDir(), freeport.Choose()
	changes = append(changes, "127.0.0.1:8080", limits, "127.0.0.1:3000", application.Listener.Addr().String())
	for _, text := range g.changes {
		changes = append(changes, strings.ReplaceAll(text, "PORT", own))
	}
	for _, name := range g.files {
		text, err := os.ReadFile(filepath.Join("..", "examples", "gateways", name))
		require.NoError(r, err)
		require.NoError(r, os.WriteFile(filepath.Join(dir, name), []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o644))
	}
	cmd := exec.CommandContext(r.Context(), program, g.args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, inproc.Patience
	log := &inproc.LogBuffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	require.NoError(r, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the test says what the program did wrong
	}()
	r.Cleanup(func() {
		<-ended
		if r.Failed() {
			r.Log(log.String())
		}
	})
	r.url = "http://127.0.0.1:" + own
	inproc.Await(r, "a gateway that listens", func() bool {
		c, err := net.Dial("tcp", r.url[len("http://"):])
		if err == nil {
			_ = c.Close() // nothing was sent
		}
		return err == nil
	})
	r.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(gatewayClient)}}).DialContext,
	}, Timeout: inproc.Patience}
}

// ServeHTTP is the application.
func (r *gatewayTest) ServeHTTP(w http.ResponseWriter, got *http.Request) {
	body, _ := io.ReadAll(got.Body) // a wrong body is not the one that is expected
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed = append(r.passed, got.Method+" "+got.RequestURI+" "+string(body))
	_, _ = io.WriteString(w, "application")
}

// chosen is the query of a client that would like to choose key, cost and status.
const chosen = "/shop/?key=x&hits=0&deny=200"

// forged are header fields of such a client.
var forged = []string{
	"X-Forwarded-For", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
	"X-Forwarded-Prefix", "X-Original-Uri", "X-Original-Url", "X-Original-Method", "X-Original-Host", "X-Original-For", "X-Real-Ip", "Forwarded",
	"X-Envoy-External-Address", "X-Envoy-Original-Path", "X-Rewrite-Url", "X-Http-Method-Override",
}

// get sends a request with a body, and the fields of forged if forge is set.
func (r *gatewayTest) get(path string, forge bool) (status int, header http.Header, body string) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+path, strings.NewReader("hello"))
	require.NoError(r, err)
	q.Host = "Shop.Example"
	if forge {
		for _, name := range forged {
			q.Header.Set(name, "192.0.2.7")
		}
		q.Header.Set("Authorization", "Basic eDp5")
		q.Header.Set("Connection", "X-Forwarded-For, X-Forwarded-Uri, X-Forwarded-Method, X-Original-Uri, X-Original-Method")
	}
	w, err := r.client.Do(q)
	require.NoError(r, err)
	defer w.Body.Close()
	all, err := io.ReadAll(w.Body)
	require.NoError(r, err)
	return w.StatusCode, w.Header, string(all)
}

// wants is what the application must have got: n times the path.
func (r *gatewayTest) wants(path string, n int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(r, r.passed, n)
	for _, got := range r.passed {
		require.Equal(r, "POST "+path+" hello", got)
	}
}

// requests checks two requests within the limit and others beyond it. The client would like to change that.
func (*gateway) requests(r *gatewayTest) {
	for left := 1; left >= 0; left-- {
		status, header, body := r.get(chosen, left == 0)
		require.Equal(r, 200, status)
		require.Equal(r, "application", body)
		require.Equal(r, `"api";q=2;w=60`, header.Get("RateLimit-Policy"))
		require.Equal(r, `"api";r=`+string(rune('0'+left))+`;t=60`, header.Get("RateLimit"))
		require.Empty(r, header.Get("Retry-After"))
	}
	for _, forge := range []bool{false, true, true} {
		status, header, body := r.get(chosen, forge)
		require.Equal(r, 429, status)
		require.Equal(r, `"api";q=2;w=60`, header.Get("RateLimit-Policy"))
		require.Equal(r, `"api";r=0;t=60`, header.Get("RateLimit"))
		require.Equal(r, "60", header.Get("Retry-After"))
		require.Equal(r, "application/problem+json", header.Get("Content-Type"))
		require.Contains(r, body, `"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"`)
		require.Contains(r, body, `"status":429`)
	}
	r.wants(chosen, 2)
	require.Equal(r, inproc.Array(inproc.Bulk("api:"+gatewayClient+"/32")), r.redis.Do("KEYS", "*"))
}

// statuses checks a block, a header that is too long, a policy that is not there, and a server that is away.
func (g *gateway) statuses(r *gatewayTest) {
	r.redis.Set("RL.BLOCK api " + gatewayClient + " EX 90")
	status, header, _ := r.get("/", false)
	require.Equal(r, 429, status)
	require.Equal(r, "90", header.Get("Retry-After"))
	require.Equal(r, ":1\r\n", r.redis.Say("RL.UNBLOCK api "+gatewayClient))

	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url, nil)
	require.NoError(r, err)
	q.Header.Set("X-Long", strings.Repeat("x", 40_000))
	if w, err := r.client.Do(q); err == nil { // the gateway may close the connection before it has read it
		require.NoError(r, w.Body.Close())
		require.Contains(r, []int{400, 431}, w.StatusCode)
	}

	require.Equal(r, ":1\r\n", r.redis.Say("RL.POLICY DEL api"))
	status, _, _ = r.get("/", false)
	require.Equal(r, g.fault, status)
	r.wants("/", 0)

	r.server.End()
	status, header, _ = r.get("/", false)
	require.Equal(r, g.away, status)
	require.Empty(r, header.Get("RateLimit"))
	if g.away == 200 {
		r.wants("/", 1)
	}
}

// hanging checks a server that accepts connections and never answers.
func (g *gateway) hanging(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer deaf.Close()
	r := &gatewayTest{T: t}
	g.run(r, deaf.Addr().String())
	status, _, _ := r.get("/", false)
	require.Equal(t, g.hangs, status)
	if status == 200 {
		r.wants("/", 1)
	}
}

// originals checks that the parts of a key about the original request are those of the request, whatever its fields say.
func (*gateway) originals(r *gatewayTest) {
	status, _, _ := r.get(chosen, true)
	require.Equal(r, 200, status)
	require.Equal(r, inproc.Array(inproc.Bulk("api:"+gatewayClient+"|POST|shop.example|"+chosen)), r.redis.Do("KEYS", "*"))
}
