//go:build unix

package page_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// These incidents are of other processes that a server needs, or of all of its calls. How many seconds
// may pass until each is named is a matter of server/outages_test.go, in virtual time.

// TestIncidentStore: the Redis that has the limits dies.
func TestIncidentStore(t *testing.T) {
	t.Parallel()
	store := storetest.Best(t).Single(t, storetest.Options{})
	r := start(t, "--store", "redis://"+store.Addr)
	r.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, r)
	since := time.Now()
	store.Kill()
	incident{says: []string{"Sick: the store does not answer", store.Addr}, sick: true}.expect(t, r, b, since)
}

// TestIncidentPrimary: the primary of a replica dies.
func TestIncidentPrimary(t *testing.T) {
	t.Parallel()
	primary, replica := start(t), start(t)
	b := open(t, replica.page, wide)
	b.until(ready)
	replica.follow(primary, b)
	since := time.Now()
	primary.kill()
	incident{says: []string{"Sick: this is a replica, and its primary does not answer", "127.0.0.1:" + primary.port}, sick: true}.expect(t, replica, b, since)
}

// TestIncidentRefused: a primary comes back empty, and is called before anybody notices.
func TestIncidentRefused(t *testing.T) {
	t.Parallel()
	primary, replica := start(t), start(t)
	b := open(t, replica.page, wide)
	b.until(ready)
	primary.must("CL.THROTTLE", "api:acme", 9, 10, 3600)
	replica.follow(primary, b)
	b.until(`S.over.now.keys === 1`)
	primary.kill()
	since := time.Now()
	primary.begin()
	primary.must("CL.THROTTLE", "api:other", 9, 10, 3600)
	incident{says: []string{"Sick: the primary has another data set and is refused", "127.0.0.1:" + primary.port}, sick: true}.expect(t, replica, b, since)
	b.until(`[...document.querySelectorAll('#list li.bad')].some(e => e.textContent.includes('replica that refuses its primary'))`)
}

// TestIncidentReplicas: there are fewer replicas than changes need.
func TestIncidentReplicas(t *testing.T) {
	t.Parallel()
	primary, replica := start(t), start(t)
	other := open(t, replica.page, wide)
	other.until(ready)
	replica.follow(primary, other)
	primary.must("CONFIG", "SET", "min-replicas-to-write", "1")
	primary.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, primary)
	since := time.Now()
	replica.kill()
	incident{says: []string{"Sick: too few replicas", "-NOREPLICAS"}, sick: true}.expect(t, primary, b, since)
	b.until(`document.querySelector("#decisions .el") !== null`)
}

// TestIncidentAcknowledgements: a replica stands still, with its link up.
func TestIncidentAcknowledgements(t *testing.T) {
	t.Parallel()
	primary, replica := start(t), start(t)
	other := open(t, replica.page, wide)
	other.until(ready)
	replica.follow(primary, other)
	primary.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, primary)
	since := time.Now()
	require.NoError(t, replica.process.Process.Signal(syscall.SIGSTOP))
	b.until(`[...document.querySelectorAll('#list li.bad')].some(e => e.textContent.includes('Replicas acknowledge'))`)
	t.Logf("named after %.1f s: %s", time.Since(since).Seconds(), b.text("list"))
	b.picture("incident-acknowledgements")
	require.NoError(t, replica.process.Process.Signal(syscall.SIGCONT))
	b.until(`![...document.querySelectorAll('#list li.bad')].some(e => e.textContent.includes('Replicas acknowledge'))`)
	b.fine(primary.page)
}

// TestIncidentErrors: what callers ask for is answered with an error.
func TestIncidentErrors(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.load("orders", callsEach("api", 200, 99, 100, 60))
	b := watch(t, r)
	since := time.Now()
	calls := callsEach("jobs", 600, 99, 100, 0) // a period of 0
	r.load("jobs", calls)
	incident{says: []string{"Sick: calls of limiters are answered with errors"}, sick: true}.expect(t, r, b, since)
	b.until(`document.querySelector('#decisions .el') !== null`)
}

// TestIncidentDenials: nearly every call is denied, on a server that has just started.
func TestIncidentDenials(t *testing.T) {
	t.Parallel()
	r := start(t)
	since := time.Now()
	r.load("orders", callsEach("api", 200, 0, 1, 3600))
	b := watch(t, r)
	incident{says: []string{"The limiter works. Nearly every call is denied"}}.expect(t, r, b, since)
}
