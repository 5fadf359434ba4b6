package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

func administer(v *keyspace.Handle, key string, c decide.AdminCall) (decide.AdminResult, error) {
	a := &decide.Ask{Key: []byte(key), Family: decide.Admin, Admin: c}
	v.Decide(a)
	return a.Result, a.Err
}

// TestKeysAreAskedForAsElsewhere asks for scans, counts and changes of keys through decide.Ask, as
// a caller of any other store does.
func TestKeysAreAskedForAsElsewhere(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		_, v, _ := open(t, o)
		_, err := asks.Throttle(v, 0, []byte("cell"), quota(t), 1)
		require.NoError(t, err)
		require.NoError(t, v.Put(0, []byte("text"), entry.String, []byte("value"), entry.NoExpiry))
		set(t, v, [][]byte{[]byte("other")}, "x")
		tat, later := t0.Add(2*time.Second), t0.Add(time.Hour)

		r, err := administer(v, "cell", decide.AdminCall{Op: decide.Expiry})
		require.NoError(t, err)
		require.Equal(t, decide.AdminResult{Found: true, HasExpiry: true, Expiry: tat}, r)
		r, err = administer(v, "cell", decide.AdminCall{Op: decide.Expire, At: later})
		require.NoError(t, err)
		require.True(t, r.Done)
		at, _, _ := v.Expiry(0, []byte("cell"))
		require.Equal(t, later, at)
		r, _ = administer(v, "cell", decide.AdminCall{Op: decide.Text})
		text, _, _ := v.AppendString(nil, 0, []byte("cell"))
		require.Equal(t, string(text), r.Text, "the TAT, whatever the expiry")

		r, err = administer(v, "cell", decide.AdminCall{Op: decide.Describe})
		require.NoError(t, err)
		require.True(t, r.Found)
		require.Equal(t, "bytes", r.Fields[len(r.Fields)-1].Name)
		r, err = administer(v, "none", decide.AdminCall{Op: decide.Describe})
		require.NoError(t, err)
		require.Equal(t, decide.AdminResult{}, r)

		r, _ = administer(v, "", decide.AdminCall{Op: decide.Count})
		require.Equal(t, int64(3), r.Number)
		r, _ = administer(v, "", decide.AdminCall{Op: decide.Scan, Count: 1000})
		require.Zero(t, r.Cursor)
		types := map[string]string{}
		for _, k := range r.Keys {
			types[string(k.Key)] = k.Type
		}
		require.Equal(t, map[string]string{"cell": "string", "text": "string", "other": "string"}, types)

		r, _ = administer(v, "text", decide.AdminCall{Op: decide.Delete})
		require.True(t, r.Done)
		require.False(t, v.Exists(0, []byte("text")))
		_, err = administer(v, "text", decide.AdminCall{})
		require.Error(t, err)
		r, _ = administer(v, "", decide.AdminCall{Op: decide.Flush})
		require.True(t, r.Done)
		require.Zero(t, v.Len(0))
	})
}

func TestAskAboutACollection(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	for i := range 2000 { // large enough to be stored as a tree
		require.NoError(t, v.WriteSet(0, []byte("set"), func(s *collection.Set) error {
			_, err := s.Add([]byte{byte(i), byte(i >> 8), 1, 2, 3, 4})
			return err
		}))
	}
	r, err := administer(v, "set", decide.AdminCall{Op: decide.Type})
	require.NoError(t, err)
	require.Equal(t, "set", r.Text)
	_, err = administer(v, "set", decide.AdminCall{Op: decide.Text})
	require.ErrorIs(t, err, limit.ErrWrongType)
	r, err = administer(v, "set", decide.AdminCall{Op: decide.Persist})
	require.NoError(t, err)
	require.False(t, r.Done)
	r, err = administer(v, "set", decide.AdminCall{Op: decide.Expire, At: t0.Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, r.Done)
	at, _, _ := v.Expiry(0, []byte("set"))
	require.Equal(t, t0.Add(time.Hour), at)
	r, _ = administer(v, "set", decide.AdminCall{Op: decide.Delete})
	require.True(t, r.Done)
	require.Zero(t, v.Len(0))
}
