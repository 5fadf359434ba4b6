package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/admin/page"
)

// get asks the handler and returns the response with its body.
func get(t *testing.T, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Result(), string(body)
}

// TestPageIsOneSmallFileThatAsksOnlyItsOrigin: it names no other host, and at most 60 KB.
func TestPageIsOneSmallFileThatAsksOnlyItsOrigin(t *testing.T) {
	r, body := get(t, http.MethodGet, "/")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"))
	require.LessOrEqual(t, len(body), 60_000)
	for _, address := range regexp.MustCompile(`[a-z]+://[^'"\s]*`).FindAllString(body, -1) {
		require.Equal(t, "http://www.w3.org/2000/svg", address, "the name of SVG is the only address")
	}
	require.NotRegexp(t, `\ssrc=|@import|url\(`, body)
}

// TestPolicyAllowsExactlyTheScriptAndTheStyleOfThePage: the hashes are those of the elements, of
// which there is one each.
func TestPolicyAllowsExactlyTheScriptAndTheStyleOfThePage(t *testing.T) {
	r, body := get(t, http.MethodGet, "/")
	policy := r.Header.Get("Content-Security-Policy")
	require.Equal(t, page.Policy(), policy)
	for tag, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		found := regexp.MustCompile(`(?s)<`+tag+`\b[^>]*>(.*?)</`+tag+`>`).FindAllStringSubmatch(body, -1)
		require.Len(t, found, 1)
		sum := sha256.Sum256([]byte(found[0][1]))
		require.Contains(t, policy, directive+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.Contains(t, policy, "default-src 'self';")
	require.NotContains(t, policy, "unsafe")
}

// TestPageMakesNoMarkupOfWhatItIsTold: everything from the server goes into text nodes.
func TestPageMakesNoMarkupOfWhatItIsTold(t *testing.T) {
	_, body := get(t, http.MethodGet, "/")
	for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser", "setHTML", "javascript:", " style="} {
		require.NotContains(t, body, way)
	}
	require.NotRegexp(t, `\son[a-z]+=["']`, body)
}

func TestPageIsServedAtItsPathAlone(t *testing.T) {
	r, _ := get(t, http.MethodGet, "/other")
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	r, _ = get(t, http.MethodPost, "/")
	require.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
	r, body := get(t, http.MethodHead, "/")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Empty(t, strings.TrimSpace(body))
}

// TestPageIsNotSentTwice: a browser that has it asks whether it is still the same.
func TestPageIsNotSentTwice(t *testing.T) {
	r, _ := get(t, http.MethodGet, "/")
	require.Equal(t, "no-cache", r.Header.Get("Cache-Control"))
	again, body := get(t, http.MethodGet, "/", "If-None-Match", r.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	require.Empty(t, body)
}
