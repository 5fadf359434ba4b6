// Package page is the page of the admin port: one HTML file that polls /api/v1 each second. It
// shows the state of the server. The file is embedded. It contains its script and its style, so the
// page comes in one reply, and its parts cannot be of different versions.
//
// The package accesses nothing of the server: the API is in package report, and package admin
// checks the credentials of requests.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

//go:embed page.html
var source []byte

// Handler serves the page at / and nothing else.
func Handler() http.Handler {
	policy := Policy()
	sum := sha256.Sum256(source)
	tag := fmt.Sprintf(`"%x"`, sum[:12])
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-cache") // with no-cache, a browser asks each time whether its ETag is still valid
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(source))
	})
}

// Policy returns the Content-Security-Policy of the page. The page may send requests only to its
// own origin, and may run and use only the script and the style that are in it. So text in a key
// can never run as a script.
func Policy() string {
	return fmt.Sprintf("default-src 'self'; script-src '%s'; style-src '%s'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		digest("script"), digest("style"))
}

// digest returns the hash by which a policy permits the content of the only element <tag> of the
// page.
func digest(tag string) string {
	_, rest, _ := bytes.Cut(source, []byte("<"+tag+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+tag+">"))
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
