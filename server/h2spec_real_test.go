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

// TestH2spec runs all cases of h2spec against http-port, with prior knowledge and over TLS. Those that fail are exactly
// those that are known.
func TestH2spec(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles h2spec, and most of the time waits")
	}
	program := filepath.Join(t.TempDir(), "h2spec")
	said, err := exec.Command("go", "build", "-modfile=../tools/go.mod", "-o", program, "github.com/summerwind/h2spec/cmd/h2spec").CombinedOutput()
	require.NoError(t, err, "%s", said)
	t.Run("prior knowledge", func(t *testing.T) {
		t.Parallel()
		known := maps.Clone(h2specKnown)
		maps.Copy(known, h2specPlain)
		runH2spec(t, program, known, nil)
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		pair := certtest.New(t).Issue(t, certtest.Subject{Name: "server"})
		runH2spec(t, program, h2specKnown, []string{"--tls", "--insecure"},
			"--http-tls", "yes", "--tls-cert-file", pair.CertFile, "--tls-key-file", pair.KeyFile, "--tls-auth-clients", "no")
	})
}

// runH2spec runs h2spec with flags against a server with options, and compares the cases that fail with those known.
func runH2spec(t *testing.T, program string, known map[h2specCase]string, flags []string, options ...string) {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, number, err := net.SplitHostPort(port.Addr().String())
	require.NoError(t, err)
	s := inproc.ServeWith(t, "goroutine", func(o *server.Options) {
		o.Inherited = map[string][]net.Listener{"http-port": {port}}
	}, append([]string{"--http-port", number}, options...)...)
	c := s.Dial()
	// A denial has a body, which many cases wait for.
	c.Set("RL.POLICY SET api LIMITS SW 0 60 FIXED")
	run := func(sections ...string) map[h2specCase]string {
		report := filepath.Join(t.TempDir(), "report.xml")
		args := append([]string{
			"--strict", "--host", host, "--port", number, "--path", "/v1/check/api/key=ip", "--timeout", h2specTimeout, "--junit-report", report,
		}, flags...)
		ctx, cancel := context.WithTimeout(t.Context(), inproc.Patience)
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
			require.Empty(t, result, "%s: %s", is.section, is.title)
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
