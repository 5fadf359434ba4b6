package page_test

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
)

// TestPicture makes the picture of docs/page.md from a running server, with make picture. It shows
// a caller of a policy far above its limit, blocked by an operator for a while. CELL_PICTURE is how
// long the server runs without such a caller before.
func TestPicture(t *testing.T) {
	calm, err := time.ParseDuration(os.Getenv("CELL_PICTURE"))
	if err != nil {
		t.Skip("make picture makes it")
	}
	r := start(t)
	r.must("RL.POLICY", "SET", "api", "COMMENT", "public API", "LIMITS", "TB", 200, 100, 1, "SW", 1_000_000, 86400, "FIXED")
	r.must("RL.OVERRIDE", "SET", "api", "globex", "EX", "30d", "COMMENT", "ticket 4711", "LIMITS", "TB", 2000, 1000, 1, "SW", 1_000_000, 86400, "FIXED")
	of := func(keys int, name string, words ...any) func(i int) [][]any {
		return func(i int) (calls [][]any) {
			for k := i % 10; k < keys; k += 10 {
				call := []any{words[0], fmt.Sprintf("%s:%d", name, k)}
				if words[0] == "RL.USE" {
					call = []any{words[0], name, fmt.Sprintf("tenant-%d", k)}
				}
				calls = append(calls, append(call, words[1:]...))
			}
			return calls
		}
	}
	r.load("gateway", of(900, "api", "RL.USE"))
	r.load("edge", of(200, "login", "CL.THROTTLE", 4, 100, 60))
	r.load("search-svc", of(120, "search", "SW.ALLOW", 100, 60))
	r.load("reports", of(30, "export", "TB.ACQUIRE", 20, 10, 1))
	b := open(t, r.page, wide)
	b.until(ready)
	pause(calm)
	r.load("orders-svc", func(int) (calls [][]any) {
		for range 120 {
			calls = append(calls, []any{"RL.USE", "api", "acme-prod"})
		}
		return calls
	})
	b.until(`document.getElementById('title').textContent.includes('One caller')`)
	pause(calm / 4)
	r.must("RL.BLOCK", "api", "acme-prod", "EX", "1h", "REASON", "retries without a pause, see ticket 4712")
	b.until(`document.querySelector('.policy.no') !== null && /Block/.test(document.querySelector('.policy').textContent)`)
	pause(4 * time.Second) // each part has been asked for since
	for size, l := range map[string]look{"wide": wide, "dark": dark, "narrow": narrow} {
		b.resize(l)
		b.until(`document.querySelector('#decisions svg').viewBox.baseVal.width <= innerWidth`)
		b.picture("picture-" + size)
	}
	b.resize(wide)
	b.fine(r.page)
	if calm < time.Minute {
		return // a look at it
	}
	data, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join("..", "..", "docs", "images", "page.png"), signed(data, "cellserver "+server.Version), 0o644))
}

// signed adds what a picture is of to a PNG, before its last chunk: a test of docs compares it.
func signed(png []byte, of string) []byte {
	const end = 12 // the length of the last chunk
	chunk := []byte("tEXtSoftware\x00" + of)
	text := bigEndian(uint32(len(chunk) - len("tEXt")))
	text = append(append(text, chunk...), bigEndian(crc32.ChecksumIEEE(chunk))...)
	return slices.Insert(png, len(png)-end, text...)
}

func bigEndian(n uint32) []byte { return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
