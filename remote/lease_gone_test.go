package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
)

// TestLeaseGoesWithItsKeyHoweverThatIsDeleted: by a transaction, by EXPIRE, with all other keys, or
// while the lease is being prolonged.
func TestLeaseGoesWithItsKeyHoweverThatIsDeleted(t *testing.T) {
	for name, remove := range map[string]func(s *server){
		"transaction": func(s *server) { s.transact(t, admin("k", decide.Delete), admin("k", decide.Exists)) },
		"expired": func(s *server) {
			a := admin("k", decide.Expire)
			a.Admin.At = 1
			s.transact(t, a, admin("k", decide.Exists))
		},
		"flushed": func(s *server) {
			s.put([]byte("cs:k"), nil, 0)
			s.forget()
		},
		"prolonged": func(s *server) {
			k := s.shards[s.number([]byte("k"))].keys["k"]
			for k.lease != nil && !k.lease.renewing {
				s.runUntil(s.due[0].at)
			}
			s.call(t, admin("k", decide.Delete))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}
			s := serve(newCloud(1).join(n), lending(100*time.Millisecond))
			a := hot(t, s, 1_000_000)
			for range 50 {
				s.call(t, a)
			}
			remove(s)
			require.Nil(t, s.look([]byte("cs:k")))
			s.call(t, a)
			require.True(t, a.Decision.Allowed())
			require.EqualValues(t, 999_999, a.Decision.Remaining, "not out of what was paid for")
			s.runFor(time.Second)
			require.EqualValues(t, 1, s.used("k"))
		})
	}
}
