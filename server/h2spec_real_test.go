//go:build real

package server_test

import (
	"context"
	"encoding/xml"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// h2specCase is a case of h2spec: the section that it is about, such as http2/4.2, and its title.
type h2specCase struct{ section, title string }

// h2specCases is how many cases h2spec has, with those that it calls strict.
const h2specCases = 146

// h2specTimeout is how many seconds h2spec waits for a frame.
const h2specTimeout = "5"

// h2specHeld are sections, or cases of them, that send more frames on a stream that is still open. Their result would depend on
// how soon the answer comes, so the server is paused for them.
var h2specHeld = []string{"http2/5.1.2", "http2/6.9.1/3", "http2/8.1.2.6"}

// h2specKnown are the cases that fail on http-port, with the reason.
var h2specKnown = map[h2specCase]string{
	{"http2/6.5.3", "Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE"}:                                            "net/http closes the connection if a setting is in a frame twice, so that a client cannot keep it busy",
	{"http2/8.1.2.2", "Sends a HEADERS frame that contains the connection-specific header field"}:                       "net/http answers with 400, which RFC 9113 allows in section 8.1.1",
	{"http2/8.1.2.2", "Sends a HEADERS frame that contains the TE header field with any value other than \"trailers\""}: "net/http answers with 400, which RFC 9113 allows in section 8.1.1",
}

// h2specPlain is a case that fails without TLS only, and its reason.
var h2specPlain = map[h2specCase]string{
	{"http2/3.5", "Sends invalid connection preface"}: "the port has HTTP/1.1 as well, so what is no preface is a request of it: 400, and the connection is closed",
}

// h2specService are the cases that fail on rls-port, by the reason. h2spec sends no request of gRPC, so the answer to each is
// a status in a HEADERS frame that ends the stream.
var h2specService = map[string][]h2specCase{
	"the answer has no DATA frame": {
		{"generic/2", "Sends a WINDOW_UPDATE frame on half-closed (remote) stream"},
		{"generic/2", "Sends a PRIORITY frame on half-closed (remote) stream"},
		{"http2/6.5.3", "Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE"},
		{"http2/6.9.1", "Sends SETTINGS frame to set the initial window size to 1 and sends HEADERS frame"},
		{"http2/6.9.2", "Changes SETTINGS_INITIAL_WINDOW_SIZE after sending HEADERS frame"},
		{"http2/6.9.2", "Sends a SETTINGS frame for window size to be negative"},
	},
	"the answer comes before the next frame, so its stream counts no longer": {
		{"http2/5.1.2", "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded"},
		{"http2/8.1.2.6", `Sends a HEADERS frame with the "content-length" header field which does not equal the DATA frame payload length`},
		{"http2/8.1.2.6", `Sends a HEADERS frame with the "content-length" header field which does not equal the sum of the multiple DATA frames payload length`},
	},
	"grpc-go ignores frames of streams that are not open: they cost it nothing, and DATA is within the window of the connection": {
		{"http2/5.1", "idle: Sends a DATA frame"},
		{"http2/5.1", "idle: Sends a RST_STREAM frame"},
		{"http2/5.1", "idle: Sends a WINDOW_UPDATE frame"},
		{"http2/5.1", "half closed (remote): Sends a DATA frame"},
		{"http2/5.1", "closed: Sends a DATA frame after sending RST_STREAM frame"},
		{"http2/5.1", "closed: Sends a DATA frame"},
		{"http2/6.1", `Sends a DATA frame on the stream that is not in "open" or "half-closed (local)" state`},
		{"http2/6.4", "Sends a RST_STREAM frame on a idle stream"},
		{"http2/8.2", "Sends a PUSH_PROMISE frame"},
	},
	"grpc-go has no priorities, which RFC 9113 has removed": {
		{"http2/5.3.1", "Sends HEADERS frame that depend on itself"},
		{"http2/5.3.1", "Sends PRIORITY frame that depend on itself"},
	},
	"grpc-go closes the connection without GOAWAY, which is a SHOULD": {
		{"http2/5.4.1", "Sends an invalid PING frame to receive GOAWAY frame"},
	},
	"grpc-go pushes nothing, and sends no frame longer than the least maximum": {
		{"http2/6.5.2", "SETTINGS_ENABLE_PUSH (0x2): Sends the value other than 0 or 1"},
		{"http2/6.5.2", "SETTINGS_MAX_FRAME_SIZE (0x5): Sends the value below the initial value"},
		{"http2/6.5.2", "SETTINGS_MAX_FRAME_SIZE (0x5): Sends the value above the maximum allowed frame size"},
	},
	"grpc-go counts what it has sent, not the window, so that no sum overflows": {
		{"http2/6.9.1", "Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1"},
		{"http2/6.9.1", "Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream"},
	},
	"grpc-go answers with a status": {
		{"http2/8.1.2.2", `Sends a HEADERS frame that contains the TE header field with any value other than "trailers"`},
		{"http2/8.1.2.3", `Sends a HEADERS frame with empty ":path" pseudo-header field`},
		{"http2/8.1.2.3", `Sends a HEADERS frame that omits ":method" pseudo-header field`},
		{"http2/8.1.2.3", `Sends a HEADERS frame that omits ":scheme" pseudo-header field`},
		{"http2/8.1.2.3", `Sends a HEADERS frame that omits ":path" pseudo-header field`},
	},
}

// h2specServicePlain is a case that fails on rls-port without TLS only, and its reason.
var h2specServicePlain = map[h2specCase]string{
	{"http2/3.5", "Sends invalid connection preface"}: "the connection is closed before all of what is no preface is read, so it is reset",
}

// h2specPort is a port with the cases that are known to fail, with their reasons.
type h2specPort struct {
	name, path   string
	known, plain map[h2specCase]string // plain are those without TLS
	options      []string
}

// h2specPorts are the ports that have HTTP/2.
func h2specPorts(t *testing.T) []h2specPort {
	service := map[h2specCase]string{}
	for reason, cases := range h2specService {
		for _, is := range cases {
			service[is] = reason
		}
	}
	return []h2specPort{
		{name: "http", path: "/v1/check/api/key=ip", known: h2specKnown, plain: h2specPlain},
		{name: "rls", path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", known: service, plain: h2specServicePlain, options: rulesOf(t, fooTwo)},
	}
}

// TestH2spec runs all cases of h2spec against each port that has HTTP/2, with prior knowledge and over TLS. Those that fail are
// exactly those that are known.
func TestH2spec(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles h2spec, and most of the time waits")
	}
	program := filepath.Join(t.TempDir(), "h2spec")
	said, err := exec.Command("go", "build", "-modfile=../tools/go.mod", "-o", program, "github.com/summerwind/h2spec/cmd/h2spec").CombinedOutput()
	require.NoError(t, err, "%s", said)
	pair := certtest.New(t).Issue(t, certtest.Subject{Name: "server"})
	for _, p := range h2specPorts(t) {
		t.Run(p.name+"-port, prior knowledge", func(t *testing.T) {
			t.Parallel()
			known := maps.Clone(p.known)
			maps.Copy(known, p.plain)
			p.run(t, program, known, nil)
		})
		t.Run(p.name+"-port, TLS", func(t *testing.T) {
			t.Parallel()
			p.run(t, program, p.known, []string{"--tls", "--insecure"}, "--"+p.name+"-tls", "yes",
				"--tls-cert-file", pair.CertFile, "--tls-key-file", pair.KeyFile, "--tls-auth-clients", "no")
		})
	}
}

// reset reports whether a case may end with the end of the connection, and has ended with a reset. TCP sends one if a connection is
// closed before all bytes of the peer were read, and h2spec does not accept it in the place of the end.
func reset(result string) bool {
	return strings.Contains(result, "Connection closed") && strings.Contains(result, "connection reset by peer")
}

// run runs h2spec with flags against a server with options, and compares the cases that fail with those known.
func (p *h2specPort) run(t *testing.T, program string, known map[h2specCase]string, flags []string, options ...string) {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, number, err := net.SplitHostPort(port.Addr().String())
	require.NoError(t, err)
	s := inproc.ServeWith(t, "goroutine", func(o *server.Options) {
		o.Inherited = map[string][]net.Listener{p.name + "-port": {port}}
	}, slices.Concat([]string{"--" + p.name + "-port", number}, p.options, options)...)
	c := s.Dial()
	// A denial has a body, which many cases wait for.
	c.Set("RL.POLICY SET api LIMITS SW 0 60 FIXED")
	run := func(sections ...string) map[h2specCase]string {
		report := filepath.Join(t.TempDir(), "report.xml")
		args := append([]string{
			"--strict", "--host", host, "--port", number, "--path", p.path, "--timeout", h2specTimeout, "--junit-report", report,
		}, flags...)
		ctx, cancel := context.WithTimeout(t.Context(), 5*inproc.Patience) // many cases that fail wait for h2specTimeout
		defer cancel()
		said, _ := exec.CommandContext(ctx, program, append(args, sections...)...).CombinedOutput() // it fails if a case does
		results, err := readH2spec(report)
		require.NoError(t, err, "%s", said)
		return results
	}
	results := run()
	require.Len(t, results, h2specCases)
	c.Set("CLIENT PAUSE 600000 WRITE")
	held := run(h2specHeld...)
	c.Set("CLIENT UNPAUSE")
	require.NotEmpty(t, held)
	maps.Copy(results, held)
	for is, result := range results {
		if known[is] == "" {
			if !reset(result) {
				require.Empty(t, result, "%s: %s", is.section, is.title)
			}
			continue
		}
		require.NotEmpty(t, result, "%s: %s: it is known to fail: %s", is.section, is.title, known[is])
	}
	for is := range known {
		require.Contains(t, results, is)
	}
}

// readH2spec reads a report of h2spec: what is wrong for each case that was run, "" if nothing is.
func readH2spec(file string) (map[h2specCase]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Section string  `xml:"package,attr"`
				Title   string  `xml:"classname,attr"`
				Failure *string `xml:"failure"`
				Error   *string `xml:"error"`
				Skipped *string `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	results := map[h2specCase]string{}
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			result := ""
			for kind, what := range map[string]*string{"failed": c.Failure, "error": c.Error, "skipped": c.Skipped} {
				if what != nil {
					result = kind + ": " + *what
				}
			}
			results[h2specCase{c.Section, c.Title}] = result
		}
	}
	return results, nil
}
