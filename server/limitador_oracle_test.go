package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/limitadortest"
	"github.com/cellserver/cellserver/internal/rlstest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/rls/messages"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// limitsAsker asks a server about limits of Limitador.
type limitsAsker struct {
	web *http.Client // nil to ask by gRPC alone
	url string
	rpc *grpc.ClientConn
}

// limitsMethods are the methods of gRPC for what was recorded, and limitsPaths the paths.
var (
	limitsMethods = map[string]string{
		"should": "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		"check":  "kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit",
		"report": "kuadrant.service.ratelimit.v1.RateLimitService/Report",
	}
	limitsPaths = map[string]string{"should": "/check_and_report", "check": "/check", "report": "/report"}
)

// ask asks about a row: over HTTP, or by gRPC where HTTP cannot, which has one descriptor.
func (a *limitsAsker) ask(t *testing.T, row *limitadortest.Row) (limited bool, fields map[string]string) {
	t.Helper()
	if a.web != nil && len(row.Descriptors) == 1 {
		return a.post(t, row)
	}
	return a.call(t, row)
}

// post asks over HTTP.
func (a *limitsAsker) post(t *testing.T, row *limitadortest.Row) (limited bool, fields map[string]string) {
	t.Helper()
	is := map[string]any{"namespace": row.Namespace, "values": row.Descriptors[0], "delta": row.Delta}
	if row.Headers {
		is["response_headers"] = "DRAFT_VERSION_03"
	}
	body, err := json.Marshal(is)
	require.NoError(t, err)
	got := posts(t, a.web, a.url+limitsPaths[row.Op], string(body))
	require.Contains(t, []int{http.StatusOK, http.StatusTooManyRequests}, got.status, got.body)
	fields = map[string]string{}
	for _, name := range []string{limitador.HeaderLimit, limitador.HeaderRemaining, limitador.HeaderReset} {
		if value := got.header.Get(name); value != "" {
			fields[name] = value
		}
	}
	return got.status == http.StatusTooManyRequests, fields
}

// call asks by gRPC.
func (a *limitsAsker) call(t *testing.T, row *limitadortest.Row) (limited bool, fields map[string]string) {
	t.Helper()
	var request strings.Builder
	fmt.Fprintf(&request, "domain: %q hits_addend: %d", row.Namespace, row.Delta)
	for _, values := range row.Descriptors {
		request.WriteString(" descriptors {")
		for key, value := range values {
			fmt.Fprintf(&request, " entries { key: %q value: %q }", key, value)
		}
		request.WriteString(" }")
	}
	in, out := rlstest.Encode(t, "Request", request.String()), []byte(nil)
	require.NoError(t, a.rpc.Invoke(t.Context(), "/"+limitsMethods[row.Op], &in, &out, grpc.ForceCodecV2(bytesCodec{})))
	text, err := messages.AppendJSON(nil, out)
	require.NoError(t, err)
	var is struct {
		OverallCode          string
		ResponseHeadersToAdd []struct{ Key, Value string }
	}
	require.NoError(t, json.Unmarshal(text, &is))
	fields = map[string]string{}
	for _, f := range is.ResponseHeadersToAdd {
		fields[f.Key] = f.Value
	}
	return is.OverallCode == "OVER_LIMIT", fields
}

// TestRecordedAnswersOfLimitador asks servers what Limitador was asked: one over HTTP, and one with a store by gRPC. The
// rows that differ are those of package limitador.
func TestRecordedAnswersOfLimitador(t *testing.T) {
	all := limitadortest.Cases(t, "../limitador/testdata")
	every := effort.Steps(8, 1) // one of so many cases
	for kind, asked := range map[string]int{"http": 4342, "store and gRPC": 4244} {
		count := map[string]int{}
		for i := 0; i < len(all); i += every {
			is := &all[i]
			if _, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: is.Limits}); faults != nil {
				continue
			}
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				file, start := filepath.Join(t.TempDir(), "limits.yaml"), limit.Instant(is.Rows[0].At*1e9)
				require.NoError(t, os.WriteFile(file, is.Limits, 0o600))
				flags := []string{"--http-port", "8080", "--rls-port", "8081", "--limitador-limits", file, "--limitador-headers", "draft_version_03"}
				var s *inproc.Still
				asker := new(limitsAsker)
				if kind == "http" {
					s = w.Still(start, nil, flags...)
					asker.web = w.HTTP(w.Host())
				} else {
					s, _ = w.StillWithStore(start, append(flags, "--store", "valkey://double:1")...)
				}
				w.Settle()
				asker.url, asker.rpc = "http://"+s.HTTPAddr().String(), serviceAt(t, w.Dialer(w.Host()), s.ServiceAddr(), insecure.NewCredentials())
				for j := range is.Rows {
					row := &is.Rows[j]
					if row.Failed() {
						continue
					}
					s.Clock.Set(limit.Instant(row.At * 1e9))
					if row.Op == "check" && row.Delta > 1 && (asker.web == nil || len(row.Descriptors) > 1) {
						continue // CheckRateLimit asks about one hit
					}
					count["asked"]++
					limited, fields := asker.ask(t, row)
					if row.Op == "report" {
						require.False(t, limited)
						continue
					}
					if why := row.Differs(limited, fields); why != "" {
						count[why]++
						t.Logf("%s %s %d: %s\n  %v\n  want %+v\n  got  %v %v", kind, is.Name, row.At, why, row.Descriptors, row.Res, limited, fields)
					}
				}
			})
		}
		want := map[string]int{"asked": asked, limitadortest.ZeroReset: 63, limitadortest.NewReset: 70}
		if every > 1 {
			require.Subset(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(count)), kind)
			continue
		}
		require.Equal(t, want, count, kind)
	}
}
