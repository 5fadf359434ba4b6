package remote

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// tagged returns an empty value with that tag.
func tagged(sequence uint32) []byte {
	return head(entry.Cell, 7, sequence, epoch, epoch.Add(time.Hour))
}

func write(key string, old, next []byte) Write {
	return Write{Key: []byte(key), Old: old, New: next, Keep: time.Hour}
}

// swapNow swaps and advances time until the answer.
func swapNow(m *machine, ws ...Write) (r reply) {
	r.err = fmt.Errorf("no answer")
	m.SwapAll(ws, func(applied bool, now [][]byte, err error) { r = reply{applied, now, err} })
	m.runFor(m.timeout)
	return r
}

func TestDoubleComparesAndSetsAsTheScriptsDo(t *testing.T) {
	c := newCloud(1)
	m := c.join(network{there: time.Millisecond, back: time.Millisecond})
	one, two, three := tagged(1), tagged(2), tagged(3)

	require.Equal(t, reply{applied: true}, swapNow(m, write("a", nil, one)))
	require.Equal(t, reply{raws: [][]byte{one}}, swapNow(m, write("a", nil, two)), "a conflict shows what is there")
	require.Equal(t, reply{applied: true}, swapNow(m, write("a", nil, one)), "sent twice")
	require.Equal(t, reply{applied: true}, swapNow(m, write("{a}1", nil, one), write("{a}2", nil, one)))
	require.Equal(t, reply{raws: [][]byte{one, one}}, swapNow(m, write("{a}1", one, two), write("{a}2", nil, two)))
	require.Equal(t, one, c.get([]byte("{a}1")), "nothing was written of a group that conflicts")
	require.Equal(t, reply{applied: true}, swapNow(m, write("a", one, nil)), "an empty value deletes")
	require.Equal(t, reply{raws: [][]byte{nil}}, swapNow(m, write("a", one, three)))
	require.ErrorIs(t, swapNow(m, write("a", nil, one), write("b", nil, one)).err, errCrossSlot)

	c.put([]byte("x"), []byte("text"), time.Hour)
	require.Equal(t, reply{raws: [][]byte{[]byte("text")}}, swapNow(m, write("x", nil, one)), "nobody's value is overwritten")

	brief := write("brief", nil, one)
	brief.Keep = 30 * time.Millisecond
	require.True(t, swapNow(m, brief).applied)
	require.NotNil(t, c.get(brief.Key))
	m.runFor(brief.Keep)
	require.Nil(t, c.get(brief.Key), "the engine forgets in time")
}

func TestDoubleTakesItsTime(t *testing.T) {
	c := newCloud(1)
	m := c.join(network{there: 3 * time.Millisecond, back: 2 * time.Millisecond})
	c.service = time.Millisecond
	var at []time.Duration
	for range 3 {
		m.Get([]byte("k"), func([]byte, error) { at = append(at, m.Elapsed()) })
	}
	m.runFor(time.Second)
	require.Equal(t, []time.Duration{6e6, 7e6, 8e6}, at, "one request after the other")
}

func TestDoubleLosesWhatItIsToldTo(t *testing.T) {
	for name, c := range map[string]struct {
		network
		err     error
		applied bool
	}{
		"requests": {network{drops: 1}, errNoReply, false},
		"replies":  {network{silences: 1}, errNoReply, true},
		"resets":   {network{cuts: 1}, errReset, true},
		"repeats":  {network{drops: 1, repeats: 1, late: time.Second}, errNoReply, true},
	} {
		cloud := newCloud(1)
		m := cloud.join(c.network)
		require.ErrorIs(t, swapNow(m, write("a", nil, tagged(1))).err, c.err, name)
		m.runFor(time.Second)
		require.Equal(t, c.applied, cloud.get([]byte("a")) != nil, name)
	}
	cloud := newCloud(1)
	m := cloud.join(network{})
	cloud.refuses = errOverload
	require.ErrorIs(t, swapNow(m, write("a", nil, tagged(1))).err, errOverload)
	cloud.refuses = nil
	cloud.moving[slotOf([]byte("a"))] = true
	require.ErrorIs(t, swapNow(m, write("{a}1", nil, tagged(1)), write("{a}2", nil, tagged(1))).err, errTryAgain)
	require.True(t, swapNow(m, write("a", nil, tagged(1))).applied)
}

func TestDoubleFailsOver(t *testing.T) {
	c := newCloud(1)
	m := c.join(network{})
	require.True(t, swapNow(m, write("a", nil, tagged(1))).applied)
	m.runFor(time.Second)
	require.True(t, swapNow(m, write("a", tagged(1), tagged(2))).applied)
	require.True(t, swapNow(m, write("b", nil, tagged(3))).applied)
	c.failover(500*time.Millisecond, 100*time.Millisecond)
	require.ErrorIs(t, swapNow(m, write("c", nil, tagged(4))).err, errNoReply)
	m.runFor(100 * time.Millisecond)
	require.Equal(t, tagged(1), c.get([]byte("a")))
	require.Nil(t, c.get([]byte("b")))
	require.True(t, swapNow(m, write("c", nil, tagged(4))).applied)
}

func TestDoubleKillsServers(t *testing.T) {
	c := newCloud(1)
	m := c.join(network{there: time.Millisecond})
	m.Swap(write("a", nil, tagged(1)), func(bool, []byte, error) { t.Error("a dead server heard of it") })
	m.AfterFunc(time.Millisecond, func() { t.Error("a timer of a dead server") })
	m.kill()
	m.runFor(time.Second)
	require.NotNil(t, c.get([]byte("a")), "what was sent arrives")
}

func TestDoubleIsDeterministic(t *testing.T) {
	history := func(seed uint64) (h []string) {
		c := newCloud(seed)
		m := c.join(network{there: time.Millisecond, jitter: time.Millisecond, drops: 0.1, silences: 0.1, cuts: 0.1, repeats: 0.1, late: time.Second})
		for i := range uint32(200) {
			m.Swap(write(fmt.Sprint(i%5), nil, tagged(i)), func(applied bool, now []byte, err error) {
				h = append(h, fmt.Sprint(m.Elapsed(), i, applied, now, err))
			})
		}
		m.runFor(10 * time.Second)
		return h
	}
	first, again := history(1), history(1)
	require.Len(t, first, 200)
	require.Equal(t, first, again)
	require.NotEqual(t, first, history(2))
}

// Several writers increment a number in the place of the expiry.
func TestInstantLosesNoWrite(t *testing.T) {
	i := newInstant()
	number := func(raw []byte) limit.Instant {
		if len(raw) == 0 {
			return 0
		}
		return limit.Instant(binary.BigEndian.Uint64(raw[20:]))
	}
	const writers, writes = 4, 100
	var all sync.WaitGroup
	all.Add(writers * writes)
	for range writers {
		var count func(left int, old []byte)
		writer := i.Number()
		count = func(left int, old []byte) {
			next := head(entry.Cell, writer, i.Number(), i.Now(), number(old)+1)
			i.Swap(write("k", old, next), func(applied bool, now []byte, err error) {
				switch {
				case !applied:
					count(left, now)
				case left > 1:
					count(left-1, next)
					fallthrough
				default:
					all.Done()
				}
			})
		}
		i.AfterFunc(i.UpTo(time.Millisecond), func() {
			i.Get([]byte("k"), func(raw []byte, err error) { count(writes, raw) })
		})
	}
	all.Wait()
	require.EqualValues(t, writers*writes, number(i.get([]byte("k"))))
	failed := make(chan error)
	i.SwapAll([]Write{write("a", nil, tagged(1)), write("b", nil, tagged(1))}, func(_ bool, _ [][]byte, err error) {
		failed <- err
	})
	require.ErrorIs(t, <-failed, errCrossSlot)
}

func TestWorldKeepsOrder(t *testing.T) {
	w := newWorld(1)
	var got []int
	w.after(2, func() { got = append(got, 3) })
	w.after(1, func() {
		got = append(got, 1)
		w.after(0, func() { got = append(got, 2) })
	})
	stop := w.after(1, func() { got = append(got, 9) })
	require.True(t, stop())
	require.False(t, stop())
	w.after(2, func() { got = append(got, 4) })
	w.every(3, 9, func() { got = append(got, 5) })
	w.runUntil(8)
	require.Equal(t, []int{1, 2, 3, 4, 5, 5}, got)
	require.EqualValues(t, 8, w.now)
}
