package acl_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
)

// TestLogKeepsNoMoreOfAnObjectThanItShows: a key may be as long as a request, and ACL LOG shows its
// beginning. The rest must be garbage.
func TestLogKeepsNoMoreOfAnObjectThanItShows(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var l acl.Log
	l.SetMax(128)
	before := heap()
	const long = 1 << 20
	for i := range 32 {
		text := strings.Repeat(string(rune('a'+i)), long)
		l.Add(acl.LogEntry{Reason: acl.DeniedKey, Object: text, User: text}, 0)
	}
	require.Less(t, int64(heap())-int64(before), int64(long))
	runtime.KeepAlive(&l)
}
