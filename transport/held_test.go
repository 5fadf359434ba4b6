package transport_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testHeldMuch holds back more than a round keeps together, in one reply and in many.
func testHeldMuch(t *testing.T, f factory) {
	const large, small, clients = 1_500_000, 200_000, 8
	h := newLineHandler()
	r := start(t, f, h, patientLimits())
	sizes := []int{large}
	for range clients {
		sizes = append(sizes, small)
	}
	var all []*client
	total := int64(0)
	for i, n := range sizes {
		c := r.dial()
		all = append(all, c)
		r.session(i)
		c.send("sync 7", "big "+strconv.Itoa(n))
		total += int64(n)
	}
	r.await(func() bool { return h.syncing() >= len(all) })
	r.eventually(func() bool { return r.tr.Stats().Pending >= total })
	r.pass(0)
	require.Zero(t, r.tr.Stats().BytesOut, "it left early")
	h.synced(7)
	for i, c := range all {
		c.expect("synced 7", strings.Repeat("x", sizes[i]))
		c.send("echo and on")
		c.expect("and on")
	}
	r.eventually(func() bool { return r.tr.Stats().Pending == 0 })
}

// testSettle has what was promised changed before it leaves, whether it had to wait
// or not, and what comes behind it left alone.
func testSettle(t *testing.T, f factory) {
	h := newLineHandler()
	h.lost = 9
	h.regret = func(out []byte) []byte {
		return []byte(strings.NewReplacer("synced 9", "the disk is full, so it is lost", strings.Repeat("x", 100), "").Replace(string(out)))
	}
	r := start(t, f, h, patientLimits())
	c, d := r.dial(), r.dial()
	c.send("sync 8", "echo 1")
	d.send("sync 9", "big 100", "echo synced anyway")
	r.await(func() bool { return h.syncing() >= 2 })
	h.synced(9)
	c.expect("synced 8", "1")
	d.expect("the disk is full, so it is lost", "", "synced anyway")
	c.send("sync 9", "bye") // it is settled already
	c.expect("the disk is full, so it is lost", "bye")
	c.expectEnd()
	d.send("echo 2")
	d.expect("2")
	r.eventually(func() bool { return r.tr.Stats().Pending == 0 })
}
