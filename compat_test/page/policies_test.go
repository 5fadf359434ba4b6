package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/report"
)

// find looks for a key by the search field.
func (b *tab) find(key string) {
	b.t.Helper()
	js[bool](b, fmt.Sprintf(`(() => { const f = document.getElementById('find'); f.key.value = %s; f.querySelector('button').click(); return true; })()`, quoted(key)))
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// fill types into the inputs of an action, by their labels, and returns the line that is shown then.
func (b *tab) fill(name string, given map[string]string) string {
	b.t.Helper()
	values, err := json.Marshal(given)
	require.NoError(b.t, err)
	return js[string](b, fmt.Sprintf(`(() => {
		window.action = name => [...document.querySelectorAll('.acts li')].find(e => [name, 'Really? Press again'].includes(e.querySelector('.do').textContent));
		for (const [label, value] of Object.entries(%s)) {
			const input = [...action(%q).querySelectorAll('label')].find(e => e.firstChild.data === label).querySelector('input');
			input.value = value;
			input.dispatchEvent(new Event('input', { bubbles: true }));
		}
		return action(%q).querySelector('.line').textContent;
	})()`, values, name, name))
}

// press presses a button twice, as one step, and waits for what the server says.
func (b *tab) press(name, reply string) {
	b.t.Helper()
	require.Equal(b.t, []string{name, "Really? Press again"}, js[[]string](b, fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll('.acts li')].find(e => e.querySelector('.do').textContent === %q), said = [], press = () => { said.push(e.querySelector('.do').textContent); e.querySelector('.do').click(); };
		press();
		press();
		return said;
	})()`, name)))
	b.until(fmt.Sprintf(`[...document.querySelectorAll('.reply')].some(e => e.textContent === %q)`, "✓ "+reply))
}

// TestReservationsAreShown of a running server: those of a key of a policy, and what has happened to them.
func TestReservationsAreShown(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.must("RL.POLICY", "SET", "api", "LIMITS", "TB", 500, 1, 60)
	b := open(t, r.page, wide)
	b.until(ready)
	require.Empty(t, b.text("settled"))
	r.must("RL.USE", "api", "acme", 300, "RESERVE", "a", 300)
	r.must("RL.USE", "api", "acme", 300, "RESERVE", "a", 300)
	b.find("api:acme")
	b.until(`document.querySelector('.policy') !== null && /1 reservation of 300, ends in \d/.test(document.querySelector('.policy').innerText)`)
	r.must("RL.COMMIT", "acme", "a", 200, "POLICY", "api")
	b.until(`document.getElementById('settled').innerText === 'In 5 min: reservations 1 made, 1 committed · 1 repeated call'`)
	b.until(`!document.querySelector('.policy').innerText.includes('reservation')`)
}

// TestOperatorsActOnAPolicy of a running server: every action has its line, is asked twice, applies at
// once, and is listed with pattern, duration and reason.
func TestOperatorsActOnAPolicy(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.must("RL.POLICY", "SET", "api", "LIMITS", "TB", 5, 1, 60, "SW", 100, 86400, "FIXED")
	r.must("RL.USE", "api", "acme", 5)
	b := open(t, r.page, wide)
	b.until(ready)
	says := func(words string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector('.policy') !== null && document.querySelector('.policy').innerText.replace(/\s+/g, ' ').includes(%q)`, words))
	}
	b.find("api:acme")
	says("key acme: the next call is denied.")
	says("TB 5 1 60s 5 of 5 in ")
	require.Contains(t, b.text("act"), "RL.INFO api:acme TB 5")

	cli := "redis-cli -p " + r.port + " "
	require.Equal(t, cli+`RL.BLOCK api acme EX 10m REASON 'a "loop", it'\''s mine'`, b.fill("Block", map[string]string{"for": "10m", "reason": `a "loop", it's mine`}))
	require.Equal(t, []string{"Really? Press again", "Block"}, js[[]string](b, `(() => {
		const e = action('Block'), said = [];
		e.querySelector('.do').click();
		said.push(e.querySelector('.do').textContent);
		e.querySelector('.ask input').dispatchEvent(new Event('input', { bubbles: true }));
		said.push(e.querySelector('.do').textContent);
		return said;
	})()`), "what was pressed once is not what is there now")
	b.press("Block", "OK")
	says(`Block acme applies: a "loop", it's mine, set by default, from 127.0.0.1:`)
	says("until ")
	b.press("Unblock", "1")
	says("The limits of the policy apply.")

	require.Equal(t, cli+"RL.BOOST api acme 3 EX 2h", b.fill("Boost", map[string]string{"times": "3", "for": "2h"}))
	b.press("Boost", "OK")
	says("Boost acme multiplies the limits by 3, set by")
	says("5 of 15 now")
	b.press("End the boost", "1")
	says("5 of 5 in")

	require.Equal(t, cli+"RL.EXEMPT api acme", b.fill("Exempt", map[string]string{"for": ""}), "for good")
	b.press("Exempt", "OK")
	says("the next call is allowed. Exemption acme applies, set by")
	says(", for good.")
	b.press("End the exemption", "1")
	says("The limits of the policy apply.")

	require.Equal(t, cli+"RL.OVERRIDE SET api acme EX 1h COMMENT 'ticket 7' LIMITS TB 50 1 1m", b.fill("Override", map[string]string{"comment": "ticket 7", "limits": " TB 50  1 1m "}))
	b.press("Override", "OK")
	says("Override acme applies: ticket 7, set by")
	says("TB 50 1 60s 5 of 50 now")
	b.press("Delete the override", "1")
	says("5 of 5 in")
	b.press("Reset all clauses", "2")
	says("the next call is allowed.")
	says("0 of 5 now")

	for _, words := range []string{
		`RL.BLOCK api acme EX 10m REASON "a \"loop\", it's mine"`, "RL.UNBLOCK api acme", "RL.BOOST api acme 3 EX 2h", "RL.EXEMPT api acme",
		`RL.OVERRIDE SET api acme EX 1h COMMENT "ticket 7" LIMITS TB 50 1 1m`, "RL.OVERRIDE DEL api acme", "RL.RESET api acme",
	} {
		b.until(fmt.Sprintf(`S.changes.some(c => c.text === %s)`, quoted(words)))
	}
	b.until(`document.getElementById('changes').innerText.includes('RL.RESET api acme')`)
	b.picture("policy")
	b.fine(r.page)
}

// TestAnyKeyIsFound: what the page shows of a key is what finds it, whatever its bytes are.
func TestAnyKeyIsFound(t *testing.T) {
	t.Parallel()
	r := start(t)
	c := r.client("admin")
	b := open(t, r.page, wide)
	b.until(ready)
	for key, shown := range map[string]string{
		"plain": "plain", "\xff\x00bin\\": `\xff\x00bin\\`, " two  ends ": `\x20two\x20 ends\x20`, `a\x41`: `a\\x41`, "\u202eabc": `\u{202e}abc`, "no\u00a0break": `no\u{00a0}break`,
		"\u0085": `\u{0085}`, "e\u0301": "e\u0301", "\u0301e": `\u{0301}e`, "z" + strings.Repeat("\u0310", 6): "z" + strings.Repeat("\u0310", 3) + strings.Repeat(`\u{0310}`, 3),
		"\u3164\u2800\u034f": `\u{3164}\u{2800}\u{034f}`, "日本": "日本", "\U000e0041": `\u{e0041}`,
	} {
		require.NoError(t, c.Set(context.Background(), key, "1", 0).Err())
		b.find(shown)
		b.until(fmt.Sprintf(`S.state !== null && S.state.exists && document.querySelector('#act header code').textContent === %s`, quoted(shown)))
		encoded, err := json.Marshal(report.Key(key))
		require.NoError(t, err)
		require.Equal(t, string(encoded), js[string](b, `JSON.stringify(S.state.key)`))
	}
	b.find("nosuch")
	b.until(`document.getElementById('act').innerText.includes('no such key')`)
	js[bool](b, `(() => { const f = document.getElementById('find'); f.db.value = 99; f.querySelector('button').click(); return true; })()`)
	b.until(`document.querySelector('#act .reply.err') !== null && document.querySelector('#act .reply.err').textContent.includes('db is an integer from 0 to 15')`)
	require.Empty(t, js[[]string](b, `(() => {
		const wrong = [], some = ['\\', 'x', 'u', '{', '}', '4', '1', ' ', 'é', '\u0301', '\u202e', '\u00a0', '\u0000', '💥', '\ufeff'];
		let seed = 1;
		const random = n => (seed = seed * 16807 % 2147483647) % n;
		for (let i = 0; i < 20000; i++) {
			const key = Array.from({ length: random(7) }, () => some[random(some.length)]).join('');
			if (typed(shown(key)) !== key) wrong.push(JSON.stringify(key));
			const binary = { b64: btoa('\xff' + Array.from({ length: random(5) }, () => String.fromCharCode([92, 120, 255, 32, 0, 65][random(6)])).join('')) };
			if (JSON.stringify(typed(shown(binary))) !== JSON.stringify(binary)) wrong.push(binary.b64);
		}
		return wrong;
	})()`))
}

// TestLinesAreForAShell: a shell makes the same words of a line that the page has put together.
func TestLinesAreForAShell(t *testing.T) {
	t.Parallel()
	b := open(t, oneCaller().serve(t), wide)
	for _, key := range append([]report.Key{"", "a b", "it's", `\`, `a"b`, "é", "\u202e", "$(id)", "`id`", "*", "#x", "~", "\xff'\\", "-n", "a\nb"}, hostileKeys...) {
		if strings.Contains(string(key), "\x00") {
			continue // which no argument of a program has
		}
		encoded, err := json.Marshal(key)
		require.NoError(t, err)
		line := js[string](b, "word("+string(encoded)+")")
		got, err := exec.Command("bash", "-c", "printf '%s' "+line).Output()
		require.NoError(t, err, line)
		require.Equal(t, string(key), string(got), line)
	}
}

// TestNoLetterIsNamedThatIsNotDrawn: the letters of changes stand beside each other above the chart, also
// if there are many at once, or if the verdict is about one before the time that is shown.
func TestNoLetterIsNamedThatIsNotDrawn(t *testing.T) {
	t.Parallel()
	v := oneCaller()
	v.changes = nil
	for i := range int64(200) {
		at := ago(float64(200-i) / 50)
		if i == 0 {
			at = ago(90)
		}
		v.changes = append(v.changes, report.Change{ID: i + 1, At: at, Mark: report.Mark(i + 1), Kind: "config", Text: "CONFIG SET x", By: "oncall"})
	}
	v.overview.Verdict.Change, v.overview.Verdict.Mark = 1, "A"
	v.overview.Server.UptimeS = 600
	b := open(t, v.serve(t), wide)
	b.until(ready)
	for size, l := range map[string]look{"wide": wide, "narrow": narrow} {
		b.resize(l)
		b.until(`document.querySelector('#decisions svg').viewBox.baseVal.width <= innerWidth && document.querySelector('#verdict .mk') !== null`)
		require.Equal(t, "A", js[string](b, `document.querySelector('#verdict .mk').textContent`))
		drawn := js[[]string](b, `[...document.querySelectorAll('#decisions .mt')].map(e => e.textContent.replace('‹', ''))`)
		require.Contains(t, drawn, "A", size)
		require.Greater(t, len(drawn), 5)
		for _, letter := range js[[]string](b, `[...document.querySelectorAll('#changes .mk, #verdict .mk')].map(e => e.textContent)`) {
			if letter != "↔" {
				require.Contains(t, drawn, letter, size)
			}
		}
		require.Empty(t, js[[]string](b, `(() => {
			const all = [...document.querySelectorAll('#decisions .mc')].map(e => [e.getBoundingClientRect(), e.nextSibling.textContent]), out = [];
			const top = Math.min(...[...document.querySelectorAll('#decisions .grid, #decisions text:not(.mt)')].map(e => e.getBoundingClientRect().top));
			for (const [i, [a, name]] of all.entries()) {
				if (a.bottom > top) out.push(name + ' lies over the chart');
				for (const [b, other] of all.slice(i + 1)) if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) out.push(name + ' lies over ' + other);
			}
			return out;
		})()`), size)
		require.Empty(t, js[[]string](b, `[...document.querySelectorAll('#times text')].filter(e => e.getBoundingClientRect().right > document.querySelector('#times .grid').getBoundingClientRect().left).map(e => e.textContent)`), size)
	}
	b.picture("letters")
}
