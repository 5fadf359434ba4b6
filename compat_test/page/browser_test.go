package page_test

import (
	"context"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// browserPath is the browser without a window, empty if there is none.
func browserPath() string {
	if given := os.Getenv("CELL_BROWSER"); given != "" {
		return given
	}
	for _, name := range []string{"chromium-headless-shell", "headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// TestMain starts one browser for all tests, or says in one line that there is none.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if testing.Short() {
			println("SKIP: the tests of the page take a minute and need a browser; -short leaves them out")
			return 0
		}
		// Most of the time they wait for a server to be judged.
		if err := flag.Set("test.parallel", "6"); err != nil {
			println("FAIL: " + err.Error())
			return 1
		}
		path := browserPath()
		if path == "" {
			missing := "there is no browser: install chromium-headless-shell (make setup does), or set CELL_BROWSER"
			if programs.Required() {
				println("FAIL: " + missing)
				return 1
			}
			println("SKIP: the tests of the page: " + missing)
			return 0
		}
		ctx, stop := chromedp.NewExecAllocator(context.Background(),
			append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
				chromedp.WSURLReadTimeout(time.Minute))...)
		defer stop()
		ctx, stopBrowser := chromedp.NewContext(ctx)
		defer stopBrowser()
		if err := chromedp.Do(ctx); err != nil {
			println("FAIL: the browser " + path + " does not start: " + err.Error())
			return 1
		}
		browser = ctx
		return m.Run()
	}())
}

// browser is the context of the browser that TestMain has started.
var browser context.Context

// tab is one page in the browser.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	requests []string // guarded by mu: what was asked, of anybody
	wrong    []string // guarded by mu: what the console says
}

// look is how a page is looked at.
type look struct {
	width, height int64
	dark          bool
}

var (
	wide   = look{width: 1440, height: 900}
	dark   = look{width: 1440, height: 900, dark: true}
	narrow = look{width: 360, height: 780}
)

// open shows address, which may contain a user and a password, once it says something.
func open(t testing.TB, address string, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx))
	require.NoError(t, chromedp.Listen(ctx, b.note))
	said := chromedp.Console(ctx)
	go func() { // ends with the tab
		for m, err := range said {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.wrong = append(b.wrong, m.String())
			b.mu.Unlock()
		}
	}()
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	b.resize(l)
	b.do(chromedp.Navigate(address))
	return b
}

// note keeps what the page asks for.
func (b *tab) note(event any) {
	if e, ok := event.(*network.EventRequestWillBeSent); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests = append(b.requests, e.Request.URL)
	}
}

// resize has the tab look at the page in another way.
func (b *tab) resize(l look) {
	b.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(l.width, l.height))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.t, err)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// js is the value of an expression in the page.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}

// text is what an element shows.
func (b *tab) text(id string) string {
	b.t.Helper()
	return js[string](b, `document.getElementById("`+id+`").innerText`)
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(50*time.Millisecond)))
	require.NoError(b.t, err, "%s\n%s", expression, js[string](b, "document.body.innerText"))
}

// picture writes what the whole page looks like to pictures/name.png, which git ignores.
func (b *tab) picture(name string) {
	b.t.Helper()
	data, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll("pictures", 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join("pictures", name+".png"), data, 0o644))
}

// fine checks what holds at every moment of every page: no error has occurred in it, and it has
// sent requests only to its own origin.
func (b *tab) fine(address string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.wrong)
	require.NotEmpty(b.t, b.requests)
	own, err := url.Parse(address)
	require.NoError(b.t, err)
	for _, asked := range b.requests {
		u, err := url.Parse(asked)
		require.NoError(b.t, err)
		if u.Scheme != "data" { // the icon, which is in the page
			require.Equal(b.t, own.Host, u.Host, "asked %s", asked)
		}
	}
}
