package redis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication/redis"
)

// TestReadingIncludesWhatCameBefore: a value that was read at an offset includes everything
// before it, and nothing after it.
func TestReadingIncludesWhatCameBefore(t *testing.T) {
	b := redis.NewBook(100)
	require.Equal(t, "free", b.Judge(110, "a"))
	b.Touch(100, 110, false, "a") // CL.THROTTLE a
	b.Advance(110)
	require.Equal(t, "dirty", b.Judge(120, "a"))
	position, stored, _ := b.At()
	require.Equal(t, []int64{110, 100}, []int64{position, stored})
	require.Equal(t, []string{"a"}, b.Take())
	require.Empty(t, b.Take())

	b.Stored("a", 200) // ahead of the stream
	position, stored, known := b.At()
	require.Equal(t, []int64{110, 110, 1}, []int64{position, stored, int64(known)})
	require.Equal(t, "included", b.Judge(200, "a"))
	require.Equal(t, "dirty", b.Judge(210, "a"))
	require.Equal(t, "dirty", b.Judge(150, "a", "other"), "RENAME a other")
	b.Touch(140, 150, false, "a", "other")
	require.Equal(t, []string{"other"}, b.Take(), "a includes it")
	b.Stored("other", 300)

	b.Advance(200)
	_, _, known = b.At()
	require.Equal(t, 1, known)
	require.Equal(t, "free", b.Judge(210, "a"))
	require.Equal(t, "included", b.Judge(300, "other"))
}

// TestCommandBehindAReadingIsReadAgain: a command between a reading and its reply makes the key
// dirty again. The acknowledged offset is before that command.
func TestCommandBehindAReadingIsReadAgain(t *testing.T) {
	b := redis.NewBook(0)
	b.Touch(0, 10, false, "a")
	b.Advance(10)
	require.Equal(t, []string{"a"}, b.Take())
	b.Touch(10, 20, false, "a")
	b.Advance(20)
	require.Empty(t, b.Take(), "it is being read")
	b.Stored("a", 10)
	position, stored, _ := b.At()
	require.Equal(t, []int64{20, 10}, []int64{position, stored})
	require.Equal(t, []string{"a"}, b.Take())
	b.Stored("a", 25)
	position, stored, known := b.At()
	require.Equal(t, []int64{20, 20, 1}, []int64{position, stored, int64(known)})
	b.Advance(25)
	_, _, known = b.At()
	require.Zero(t, known)
}

// TestFlushHasValuesReadAgain: FLUSHDB destroys values that were read ahead of it.
func TestFlushHasValuesReadAgain(t *testing.T) {
	b := redis.NewBook(0)
	b.Touch(0, 10, false, "a")
	b.Advance(10)
	b.Take()
	b.Stored("a", 100)
	b.Touch(10, 20, false, "a")
	require.Empty(t, b.Take())
	b.Touch(10, 20, true, "a")
	require.Equal(t, []string{"a"}, b.Take())
	require.Equal(t, "dirty", b.Judge(30, "a"))
}

// TestAnotherHistoryHasValuesReadAgain: a new primary may lack what the old one has replied ahead
// of the stream.
func TestAnotherHistoryHasValuesReadAgain(t *testing.T) {
	b := redis.NewBook(0)
	b.Touch(0, 10, false, "ahead", "reached", "dirty")
	b.Advance(20)
	b.Take()
	b.Stored("ahead", 100)
	b.Stored("reached", 20)
	b.Doubt()
	position, stored, _ := b.At()
	require.Equal(t, []int64{20, 0}, []int64{position, stored})
	require.Equal(t, []string{"ahead"}, b.Take(), "the dirty one is being read")
	require.Equal(t, "dirty", b.Judge(30, "ahead"))
	require.Equal(t, "free", b.Judge(30, "reached"))
	b.Stored("dirty", 25)
	position, stored, _ = b.At()
	require.Equal(t, []int64{20, 19}, []int64{position, stored}, "not all is stored")
	b.Stored("ahead", 25)
	position, stored, _ = b.At()
	require.Equal(t, []int64{20, 20}, []int64{position, stored})
}
