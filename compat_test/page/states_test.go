package page_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// states are all that the page can look like.
var states = map[string]func() *invented{
	"one-caller": oneCaller, "healthy": healthy, "idle": idle, "limit": limitChanged, "many-denied": manyDenied,
	"memory": memoryFull, "script": scriptRuns, "locked-out": lockedOut, "hostile": hostile,
	"blocked": blocked,
}

// faint lists texts whose contrast with what is behind them is below 4.5, as WCAG 2.2 computes
// it. A text in an SVG may stand on the shape before it.
const faint = `(() => {
  const rgb = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const lum = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  for (let n; n = walk.nextNode();) {
    const e = n.parentElement, s = getComputedStyle(e);
    if (!n.data.trim() || e.closest('script,style,noscript,.sr') || !e.getClientRects().length) continue;
    const svg = e instanceof SVGElement, shape = svg && e.previousElementSibling;
    let bg = shape && /circle|rect/.test(shape.tagName) ? rgb(getComputedStyle(shape).fill) : [0, 0, 0, 0];
    for (let p = e; bg[3] < 1 && p; p = p.parentElement) bg = rgb(getComputedStyle(p).backgroundColor);
    const fg = rgb(svg ? s.fill : s.color), a = lum(fg), b = lum(bg), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    texts++;
    if (bg[3] < 1 || fg[3] < 1 || ratio < 4.5) out.push(ratio.toFixed(2) + ' ' + e.className + ' ' + n.data + ' ' + fg + ' on ' + bg);
  }
  if (texts < 40) out.push('only ' + texts + ' texts');
  return out;
})()`

// outside names elements that stick out of their card.
const outside = `[...document.querySelectorAll('.card *')].filter(e => !e.closest('.sr') && e.getClientRects().length && e.getBoundingClientRect().right > e.closest('.card').getBoundingClientRect().right - 5)
  .map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 80))`

// ready says that the page has drawn what it was answered.
const ready = `document.querySelectorAll('#list li').length >= 9 && document.querySelector('#changes li') !== null | document.querySelector('#changes .empty') !== null && document.querySelector('#decisions svg') !== null`

// TestEveryStateCanBeReadInEverySize: on a wide screen, a dark one and a telephone nothing is
// faint or wider than the screen, nothing goes wrong, and no other host is asked.
func TestEveryStateCanBeReadInEverySize(t *testing.T) {
	for name, make := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := make().serve(t)
			b := open(t, address, wide)
			b.until(ready)
			for size, l := range map[string]look{"wide": wide, "dark": dark, "narrow": narrow} {
				b.resize(l)
				b.until(`document.querySelector('#decisions svg').viewBox.baseVal.width <= innerWidth`)
				require.LessOrEqual(t, js[int](b, "document.documentElement.scrollWidth"), int(l.width), size)
				require.Empty(t, js[[]string](b, outside), size)
				require.Empty(t, js[[]string](b, faint), size)
				b.picture(name + "-" + size)
			}
			b.fine(address)
		})
	}
}

// TestPageOfAHundredThousandDeniedKeys: the page shows those denied most, says about how many there
// are, and stays quick and short.
func TestPageOfAHundredThousandDeniedKeys(t *testing.T) {
	t.Parallel()
	r := start(t)
	b := open(t, r.page, narrow)
	c := r.client("scraper")
	for from := 0; from < 100_000; from += 2000 {
		pipe := c.Pipeline()
		for i := from; i < from+2000; i++ {
			for range 2 {
				pipe.Do(t.Context(), "CL.THROTTLE", fmt.Sprintf("scrape:2001:db8::%x", i), 0, 1, 3600)
			}
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
	}
	b.until(`document.querySelectorAll('#keys tbody th').length === 10`)
	// Of long pipelines a part is looked at, so the estimate is low.
	b.until(`/about [1-9]\d+(\.\d)? k keys denied in 5 min/.test(document.getElementById('keys').innerText)`)
	for _, l := range []look{narrow, wide} {
		b.resize(l)
		b.until(`document.querySelector('#decisions svg').viewBox.baseVal.width <= innerWidth`)
		require.LessOrEqual(t, js[int](b, "document.documentElement.scrollWidth"), int(l.width))
		require.Empty(t, js[[]string](b, outside))
	}
	b.picture("hundred-thousand")
	require.Less(t, js[int](b, "document.querySelectorAll('*').length"), 2000)
	for _, report := range []string{"overview", "keys", "groups"} {
		answer, err := http.Get(r.page + "/api/v1/" + report)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Less(t, len(body), 64<<10, report)
	}
	b.fine(r.page)
}
