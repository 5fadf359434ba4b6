package transport_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// testHeldMuch holds back more than maxHeld bytes, in one reply and in many.
func testHeldMuch(t *testing.T, f transporttest.Factory) {
	const large, small, clients = 1_500_000, 200_000, 8
	h := transporttest.NewLineHandler()
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	sizes := []int{large}
	for range clients {
		sizes = append(sizes, small)
	}
	var all []*transporttest.Client
	total := int64(0)
	for i, n := range sizes {
		c := r.Dial()
		all = append(all, c)
		r.Session(i)
		c.Send("sync 7", "big "+strconv.Itoa(n))
		total += int64(n)
	}
	r.Await(func() bool { return h.Syncing() >= len(all) })
	r.Eventually(func() bool { return r.Transport.Stats().Pending >= total })
	r.Pass(0)
	require.Zero(t, r.Transport.Stats().BytesOut, "it left early")
	h.Synced(7)
	for i, c := range all {
		c.Expect("synced 7", strings.Repeat("x", sizes[i]))
		c.Send("echo and on")
		c.Expect("and on")
	}
	r.Eventually(func() bool { return r.Transport.Stats().Pending == 0 })
}

// testSettle changes replies whose barrier was lost before they are sent, whether they had to wait
// or not. Later replies stay as they are.
func testSettle(t *testing.T, f transporttest.Factory) {
	h := transporttest.NewLineHandler()
	h.Lost = 9
	h.Regret = func(out []byte) []byte {
		return []byte(strings.NewReplacer("synced 9", "the disk is full, so it is lost", strings.Repeat("x", 100), "").Replace(string(out)))
	}
	r := transporttest.Start(t, f, h, transporttest.PatientLimits())
	c, d := r.Dial(), r.Dial()
	c.Send("sync 8", "echo 1")
	d.Send("sync 9", "big 100", "echo synced anyway")
	r.Await(func() bool { return h.Syncing() >= 2 })
	h.Synced(9)
	c.Expect("synced 8", "1")
	d.Expect("the disk is full, so it is lost", "", "synced anyway")
	c.Send("sync 9", "bye") // the barrier is settled already
	c.Expect("the disk is full, so it is lost", "bye")
	c.ExpectEnd()
	d.Send("echo 2")
	d.Expect("2")
	r.Eventually(func() bool { return r.Transport.Stats().Pending == 0 })
}
