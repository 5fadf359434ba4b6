package page_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// incident is something that happens to a server, and what the page has to say of it.
type incident struct {
	// says are what the verdict contains, and acts what may be done about it.
	says []string
	acts string
	// mark is what the change says that explains it, empty if there is none.
	mark string
	// sick is whether it is the server that is at fault.
	sick bool
}

// callsEach are calls of n keys of a group, a tenth of them at a time.
func callsEach(group string, n int, limit ...any) func(i int) [][]any {
	return func(i int) (calls [][]any) {
		for k := i % 10; k < n; k += 10 {
			calls = append(calls, append([]any{"CL.THROTTLE", fmt.Sprintf("%s:%d", group, k)}, limit...))
		}
		return calls
	}
}

// expect waits until the page names the incident, and keeps what it looks like.
func (in incident) expect(t *testing.T, r *running, b *tab, since time.Time) {
	t.Helper()
	for _, words := range in.says {
		b.until(fmt.Sprintf(`(document.getElementById('title').textContent + ' ' + document.getElementById('why').textContent).includes(%q)`, words))
	}
	took := time.Since(since)
	t.Logf("named after %.1f s: %s %s", took.Seconds(), b.text("title"), b.text("why"))
	require.Less(t, took, time.Minute)
	require.Equal(t, in.sick, js[bool](b, `document.getElementById('verdict').classList.contains('sick')`))
	if in.acts != "" {
		b.until(fmt.Sprintf(`document.getElementById('act').textContent.includes(%q)`, in.acts))
	}
	if in.mark != "" {
		b.until(`document.querySelector('#verdict .mk') !== null`)
		letter := js[string](b, `document.querySelector('#verdict .mk').textContent`)
		b.until(fmt.Sprintf(`[...document.querySelectorAll('#changes li')].some(e => e.querySelector('.mk') !== null && e.querySelector('.mk').textContent === %q && e.textContent.includes(%q))`, letter, in.mark))
		b.until(fmt.Sprintf(`[...document.querySelectorAll('#decisions .mt')].some(e => e.textContent === %q)`, letter))
	}
	b.picture("incident-" + strings.ToLower(t.Name()[len("TestIncident"):]))
	require.Empty(t, js[[]string](b, faint))
	b.fine(r.page)
}

// watch opens the page and waits until it shows calls.
func watch(t *testing.T, r *running) *tab {
	t.Helper()
	b := open(t, r.page, wide)
	b.until(ready)
	b.until(`document.querySelectorAll('.pickgroup').length > 0`)
	return b
}

// calm is for how long a server is well before something happens to it.
const calm = 6 * time.Second

// pause waits in real time: what is tested is how soon a server that runs in it is judged.
func pause(d time.Duration) { <-time.After(d) }

// TestIncidentState: the disk is full.
func TestIncidentState(t *testing.T) {
	t.Parallel()
	disk := &fullDisk{}
	r := startOn(t, disk, "--appendonly", "yes")
	r.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, r)
	since := time.Now()
	disk.full.Store(true)
	incident{says: []string{"Sick: the state cannot be kept", "-MISCONF"}, sick: true}.expect(t, r, b, since)
}

// TestIncidentMemory: one group makes more keys than there is memory for.
func TestIncidentMemory(t *testing.T) {
	t.Parallel()
	r := start(t, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction")
	r.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, r)
	made := 0
	imports := func(int) (calls [][]any) {
		for range 20_000 {
			calls = append(calls, []any{"CL.THROTTLE", fmt.Sprintf("import:%d", made%2_000_000), 99, 1, 86400})
			made++
		}
		return calls
	}
	r.untilRefused("importer", imports) // a busy machine takes long to fill the memory
	since := time.Now()
	r.load("importer", imports)
	incident{says: []string{"Sick: memory is full", "New keys of import are refused"}, sick: true}.expect(t, r, b, since)
}

// TestIncidentScript: a script never ends.
func TestIncidentScript(t *testing.T) {
	t.Parallel()
	r := start(t, "--busy-reply-threshold", "500")
	r.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, r)
	c := r.client("nightly-batch")
	id, err := c.Do(context.Background(), "CLIENT", "ID").Int64()
	require.NoError(t, err)
	since := time.Now()
	go c.Do(context.Background(), "EVAL", "while true do end", "0")
	incident{says: []string{"Sick: ", fmt.Sprintf("of client %d (nightly-batch) has been running for", id)}, acts: "SCRIPT KILL", sick: true}.expect(t, r, b, since)
	b.until(`document.querySelector('.do.danger') !== null`)
	js[bool](b, `(document.querySelector('.do.danger').click(), document.querySelector('.do.danger').click(), true)`)
	b.until(`!document.getElementById('verdict').classList.contains('sick')`)
}

// TestIncidentLockedOut: the password of a user is changed before its clients know the new one.
func TestIncidentLockedOut(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.must("ACL", "SETUSER", "app", "on", ">old", "~*", "&*", "+@all")
	r.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, r)
	since := time.Now()
	r.must("ACL", "SETUSER", "app", ">new", "<old")
	stop, stopped := context.WithCancel(context.Background())
	defer stopped()
	for range 50 {
		go func() {
			for stop.Err() == nil {
				c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + r.port, Username: "app", Password: "old", Protocol: 2, DisableIdentity: true, MaxRetries: -1})
				_ = c.Ping(stop).Err() // it cannot log in
				_ = c.Close()
				pause(time.Duration(400+rand.IntN(400)) * time.Millisecond)
			}
		}()
	}
	incident{says: []string{"lients of app cannot log in since"}, mark: "SETUSER app", sick: true}.expect(t, r, b, since)
}

// TestIncidentLimit: the callers of a group ask for a tenth of the limit that they asked for.
func TestIncidentLimit(t *testing.T) {
	t.Parallel()
	r := start(t)
	started := time.Now()
	limits := func() []any {
		if time.Since(started) < calm+10*time.Second {
			return []any{99, 100, 60}
		}
		return []any{9, 10, 60}
	}
	r.load("gateway", func(i int) [][]any { return callsEach("api", 5000, limits()...)(i) })
	r.load("edge", callsEach("login", 300, 99, 100, 60))
	b := watch(t, r)
	pause(time.Until(started.Add(calm + 10*time.Second)))
	incident{says: []string{"The limiter works. All keys in api", "10/min, was 100/min"}, mark: "10/min"}.expect(t, r, b, time.Now())
}

// TestIncidentOneCaller: one key is called at fifty times its limit, among 5,000.
func TestIncidentOneCaller(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.load("gateway", callsEach("api", 5000, 99, 100, 60))
	b := watch(t, r)
	pause(calm)
	since := time.Now()
	r.load("orders-svc", func(int) (calls [][]any) {
		for range 50 {
			calls = append(calls, []any{"CL.THROTTLE", "api:acme-prod", 9, 10, 1})
		}
		return calls
	})
	incident{says: []string{"The limiter works. One caller is over its limit", "api:acme-prod"}, acts: "redis-cli -p " + r.port + " DEL api:acme-prod"}.expect(t, r, b, since)
	b.until(`document.querySelector('#keys tr.named').textContent.includes('orders-svc')`)
	require.Contains(t, js[string](b, `document.querySelector('#keys tr.named').textContent`), "10/s")
}

// TestHealthyUnevenDayRaisesNoAlarm: groups that come and go, bursts, a few keys that are always
// denied, and a deployment of a client. CELL_DAY is how long it takes.
func TestHealthyUnevenDayRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	day := 30 * time.Second
	if given, err := time.ParseDuration(os.Getenv("CELL_DAY")); err == nil {
		day = given
	}
	r := start(t)
	wave := func(group string, keys int, mean, swing, period float64, limit ...any) {
		r.load(group+"-svc", func(i int) (calls [][]any) {
			n := max(0, mean+swing*math.Sin(float64(i)/10/period*2*math.Pi)+mean/4*rand.NormFloat64())
			for range int(n) {
				k := int(math.Abs(rand.NormFloat64()) * float64(keys) / 3)
				calls = append(calls, append([]any{"CL.THROTTLE", fmt.Sprintf("%s:%d", group, k)}, limit...))
			}
			return calls
		})
	}
	wave("api", 500, 60, 40, 23, 199, 100, 10)
	wave("search", 300, 20, 20, 41, 49, 50, 10)
	wave("login", 40, 6, 5, 13, 4, 5, 10) // a few are denied all day
	wave("export", 3, 0.4, 0.4, 7, 1, 2, 10)
	b := watch(t, r)
	js[bool](b, `(window.verdicts = new Set(), new MutationObserver(() => window.verdicts.add(document.getElementById('kind').textContent + ' | ' + document.getElementById('title').textContent)).observe(document.getElementById('verdict'), { subtree: true, childList: true, characterData: true }), true)`)
	pause(day / 2)
	wave("api", 500, 30, 20, 17, 199, 100, 10) // another instance of a client
	pause(day / 2)
	for _, verdict := range js[[]string](b, `[...window.verdicts]`) {
		require.Contains(t, verdict, "✓ healthy")
	}
	require.Contains(t, b.text("kind"), "healthy")
	b.picture("day")
	b.fine(r.page)
}
