package page_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/report"
)

// TestHostileNamesAreText: no name of a key, group, user or client becomes markup or code,
// wherever the page shows it and whatever is clicked.
func TestHostileNamesAreText(t *testing.T) {
	address := hostile().serve(t)
	b := open(t, address, wide)
	b.until(ready)
	for i := range hostileKeys {
		js[bool](b, fmt.Sprintf(`(document.querySelectorAll(".pickkey")[%d].click(), true)`, i))
		js[bool](b, `(document.querySelectorAll('.pickgroup')[0].click(), document.querySelectorAll('.pickgroup')[0].click(), true)`)
		b.until(`document.querySelectorAll('.pickkey').length === 11`)
	}
	require.Equal(t, "undefined", js[string](b, "typeof window.hacked"))
	require.Zero(t, js[int](b, "document.querySelectorAll('main img, main script, main style, main a').length"))
	shown := js[[]string](b, `[...document.querySelectorAll('.pickkey')].map(e => e.textContent)`)
	require.Contains(t, shown[0], `<img src=x onerror="window.hacked=1">`)
	require.Equal(t, `api:\xff\xfe\x00binary`, shown[3])
	require.Equal(t, `two\x0alines\x09$(touch /tmp/x)`, shown[4])
	require.Equal(t, `\u{202e}reversed\u{202c}\u{200b}`, shown[6])
	require.NotContains(t, js[string](b, "document.title + document.body.textContent"), "\u202e")
	require.Contains(t, js[string](b, "document.title"), `\u{202e}reversed`)
	require.Equal(t, `a\u{202e}b|c`, js[string](b, `said(["a\u202eb", "c"]).replace("\n", "|")`), "and in replies")
	b.fine(address)
}

// TestACheckThatFailsIsNoDenial: the sign says so, and a group whose name is blank can be seen.
func TestACheckThatFailsIsNoDenial(t *testing.T) {
	v := healthy()
	v.overview.Verdict = report.Verdict{Kind: report.Failing, Title: "The limiter works, but a check fails.", Text: "Since 02:31 UTC “Few failed logins” fails: 12 in 5 min, at most 10 is expected.", Since: ago(2)}
	v.overview.Checks = checks(map[string]string{report.CheckLogins: "12 in 5 min"})
	v.groups[0].Group = "  "
	b := open(t, v.serve(t), wide)
	b.until(ready)
	require.Equal(t, "! check", b.text("kind"))
	require.Equal(t, "! no · 8 of 9 pass", b.text("passed"), "as the verdict says")
	require.Contains(t, b.text("nums"), "212 µs", "a time below a millisecond is none of zeros")
	require.Equal(t, `\x20\x20`, js[string](b, `document.querySelector('.pickgroup').textContent`))
}

// TestSumOfAllServersSaysWhatItLacks: with others in its store a server shows the sum of all, and itself alone on demand.
func TestSumOfAllServersSaysWhatItLacks(t *testing.T) {
	v := oneCaller()
	v.overview.Servers = []report.StoreServer{{ID: "a", Address: "a:1", Self: true}, {ID: "b", Address: "b:1", Verdict: "memory", Sick: true}, {ID: "c", Address: "c:1"}}
	v.fleet = &report.Fleet{Servers: 2, Missing: 1, Now: report.FleetNow{CallsS: 99_000, KeysDenied: 7}}
	address := v.serve(t)
	b := open(t, address, wide)
	b.until(`document.getElementById('groups').textContent.includes('sum of 2 servers, 1 missing')`)
	b.until(`document.getElementById('summed').textContent === 'sum of 2 servers, 1 missing'`)
	b.until(`document.getElementById('keys').textContent.includes('at least 7 keys denied in 5 min · sum of 2 servers, 1 missing')`)
	require.Contains(t, b.text("settled"), "the figures are the sum of 2 servers, 1 missing.")
	require.Contains(t, b.text("servers"), "✕ memory")
	b.do(chromedp.Click(chromedp.CSS("[data-own]")))
	b.until(`!document.querySelector('main').textContent.includes('sum of')`)
	b.fine(address)
}

// TestBinaryKeyIsActedOnByItsBytes: a key that is not UTF-8 is asked for, and sent back, as it is.
func TestBinaryKeyIsActedOnByItsBytes(t *testing.T) {
	v := oneCaller()
	binary := report.Key("api:\xff\x00")
	v.overview.Verdict.Key = &binary
	v.state.Actions = []report.Action{action("look", "Look", false, `redis-cli --quoted-input RL.INFO '"api:\xff\x00"'`, "RL.INFO", binary)}
	address := v.serve(t)
	b := open(t, address, wide)
	b.until(`document.querySelector('.do') !== null`)
	b.do(chromedp.Click(chromedp.CSS(".do")))
	asked := <-v.asked
	require.Equal(t, []report.Key{"RL.INFO", binary}, asked.Args)
	b.until(`document.querySelector('.reply.err') !== null`)
	require.Contains(t, js[string](b, `document.querySelector('.reply').textContent`), "NOPERM User oncall")
	b.fine(address)
}

// TestDangerousActionAsksAgain: the first press asks, the second runs, and what the server says
// is shown. What is not dangerous runs at once.
func TestDangerousActionAsksAgain(t *testing.T) {
	v := oneCaller()
	address := v.serve(t)
	b := open(t, address, wide)
	b.until(`document.querySelectorAll('.do').length === 4`)
	// Both presses are one step: the page takes the second one for a first one after 5 seconds.
	require.Equal(t, []string{"Really? Press again", "0 sent", "1 sent"}, js[[]string](b, `(() => {
		const ask = window.fetch, button = () => document.querySelectorAll('.do')[1], said = [];
		let sent = 0;
		window.fetch = (...a) => { if (String(a[0]).endsWith('/run')) sent++; return ask(...a); };
		button().click();
		said.push(button().textContent, sent + ' sent');
		button().click();
		said.push(sent + ' sent');
		return said;
	})()`))
	require.Equal(t, report.RunRequest{Args: []report.Key{"DEL", "api:acme-prod"}}, <-v.asked)
	b.until(`document.querySelector('.reply') !== null && document.querySelector('.reply').textContent === '✓ 1'`)
	b.fine(address)
}

// TestWhoMayNotActSeesLinesAlone: without admin-actions there is no button that runs a line.
func TestWhoMayNotActSeesLinesAlone(t *testing.T) {
	v := oneCaller()
	v.overview.You.Actions = false
	b := open(t, v.serve(t), wide)
	b.until(`document.querySelectorAll('.line').length === 4`)
	require.Zero(t, js[int](b, `document.querySelectorAll('[data-run]').length`))
	require.Equal(t, 4, js[int](b, `document.querySelectorAll('[data-copy]').length`))
	require.Contains(t, b.text("act"), "admin-actions")
}

// TestCopyTakesTheLine: without a clipboard of the browser's, as on plain HTTP, too.
func TestCopyTakesTheLine(t *testing.T) {
	b := open(t, oneCaller().serve(t), wide)
	b.until(`document.querySelectorAll('.line').length === 4`)
	// The button says for 2 seconds that it has copied, which a look now and then may miss.
	js[bool](b, `(() => {
		Object.defineProperty(navigator, 'clipboard', { value: undefined });
		document.addEventListener('copy', () => { window.taken = getSelection().toString(); });
		window.said = new Set();
		new MutationObserver(() => window.said.add(document.querySelector("[data-copy='1']").textContent))
			.observe(document.getElementById('act'), { subtree: true, childList: true, characterData: true });
		return true;
	})()`)
	b.do(chromedp.Click(chromedp.CSS("[data-copy='1']")))
	b.until(`window.taken !== undefined && window.said.has('copied')`)
	require.Equal(t, "redis-cli DEL api:acme-prod", js[string](b, "window.taken"))
}

// TestSilentServerIsSaidToBeSilent: what is shown is no longer true, and the page says so.
func TestSilentServerIsSaidToBeSilent(t *testing.T) {
	v := oneCaller()
	b := open(t, v.serve(t), wide)
	b.until(ready)
	v.silent.Store(true)
	b.until(`/no answer for \d+ s/.test(document.getElementById('live').textContent)`)
	require.True(t, js[bool](b, `document.body.classList.contains('stale') && document.title.startsWith('?')`))
	b.picture("silent-wide")
	v.silent.Store(false)
	b.until(`/^live/.test(document.getElementById('live').textContent) && !document.body.classList.contains('stale')`)
}

// TestServerThatNeverAnswersIsSaidSo: the page explains itself before it has heard anything.
func TestServerThatNeverAnswersIsSaidSo(t *testing.T) {
	v := oneCaller()
	v.silent.Store(true)
	b := open(t, v.serve(t), narrow)
	b.until(`document.getElementById('title').textContent === 'No answer from the server'`)
	require.Contains(t, b.text("why"), "invented silence")
}

// TestEverythingIsReachedByKeyboard: Tab visits each control once, with a visible outline, and
// the keys of the keyboard do what a pointer does.
func TestEverythingIsReachedByKeyboard(t *testing.T) {
	v := oneCaller()
	address := v.serve(t)
	b := open(t, address, wide)
	b.until(`document.querySelectorAll('.line').length === 4`)
	all := js[int](b, `[...document.querySelectorAll('a, button, input, [tabindex="0"]')].filter(e => e.getClientRects().length).length`)
	js[bool](b, `(window.visited = new Set(), true)`)
	for range all {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := js[[]string](b, `(e => { window.visited.add(e); return [e.outerHTML, getComputedStyle(e).outlineStyle]; })(document.activeElement)`)
		require.Equal(t, "solid", at[1], "%s has no outline", at[0])
	}
	require.Equal(t, all, js[int](b, `window.visited.size`))

	js[bool](b, `(document.getElementById('decisions').focus(), true)`)
	b.do(chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	require.Regexp(t, `^\d\d:\d\d:\d\d · .*/s allowed · .*/s denied`, b.text("read"))
	b.do(chromedp.KeyEvent(kb.Escape))
	require.NotContains(t, b.text("read"), "allowed")

	js[bool](b, `(document.querySelectorAll('.pickkey')[2].focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('#act header').textContent.includes('api:globex')`)
	b.fine(address)
}

// TestPollingLeavesFocusAndSelectionAlone: polling keeps the focus and the selected text, so it
// does not disturb a user who reads or types.
func TestPollingLeavesFocusAndSelectionAlone(t *testing.T) {
	v := oneCaller()
	b := open(t, v.serve(t), wide)
	b.until(`document.querySelectorAll('.line').length === 4`)
	js[bool](b, `(() => {
		const key = document.querySelectorAll('.pickkey')[1], range = document.createRange();
		key.focus();
		range.selectNodeContents(document.querySelectorAll('.line')[2]);
		getSelection().removeAllRanges(); getSelection().addRange(range);
		window.polls = 0;
		const ask = window.fetch;
		window.fetch = (...a) => { if (String(a[0]).endsWith('overview')) window.polls++; return ask(...a); };
		return true;
	})()`)
	b.until(`window.polls >= 3`)
	require.Equal(t, "login:203.0.113.77", js[string](b, `document.activeElement.textContent`))
	require.Equal(t, "redis-cli CLIENT KILL USER app", js[string](b, `getSelection().toString()`))
}

// TestMarkIsComparedWhenItIsChosen: the letters of the chart and of the list do the same.
func TestMarkIsComparedWhenItIsChosen(t *testing.T) {
	v := oneCaller()
	v.changes[3].Around = &report.Around{Minutes: 8, Before: report.Period{CallsS: 11, PerGranted: 1, DeniedElse: -1}, After: report.Period{CallsS: 12, PerGranted: -1, DeniedElse: -1}}
	b := open(t, v.serve(t), wide)
	b.until(`/Around B/.test(document.getElementById('changes').textContent)`)
	js[bool](b, `(document.querySelectorAll('#decisions .pick')[2].dispatchEvent(new MouseEvent('click', { bubbles: true })), true)`)
	b.until(`/Around C/.test(document.getElementById('changes').textContent)`)
	require.Contains(t, b.text("changes"), "none granted")
	require.Equal(t, 1, js[int](b, `document.querySelectorAll('#changes [aria-pressed=true]').length`))
}

// TestGroupNarrowsTheKeys: a group that is chosen shows its keys, and again shows all.
func TestGroupNarrowsTheKeys(t *testing.T) {
	b := open(t, oneCaller().serve(t), wide)
	b.until(`document.querySelectorAll('.pickkey').length === 6`)
	js[bool](b, `(document.querySelectorAll('.pickgroup')[0].click(), true)`)
	b.until(`document.querySelectorAll('.pickkey').length === 3`)
	require.Contains(t, b.text("keys"), "in api")
	js[bool](b, `(document.querySelector("[data-group='all']").click(), true)`)
	b.until(`document.querySelectorAll('.pickkey').length === 6`)
}

// TestPageIsShownSoon: an operator does not wait for it.
func TestPageIsShownSoon(t *testing.T) {
	v := manyDenied()
	address := v.serve(t)
	started := time.Now()
	b := open(t, address, wide)
	b.until(ready)
	require.Less(t, time.Since(started), 20*time.Second) // well below 1 s on a machine that is not busy
	size, err := json.Marshal(v.groups)
	require.NoError(t, err)
	t.Logf("%d groups, %d bytes, shown after %s", len(v.groups), len(size), time.Since(started))
}
