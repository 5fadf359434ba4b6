package policies_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestSeveralPoliciesNeedAllTheirKeys: a call under several policies needs the permission for each key
// that it names, also in EXEC and in scripts, and the refusal names the key. A mistake in a call opens
// no way around that.
func TestSeveralPoliciesNeedAllTheirKeys(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin := f.Dial()
		admin.Set("RL.POLICY SET api LIMITS SW 10 3600 FIXED", "RL.POLICY SET all LIMITS SW 20 3600 FIXED", "RL.POLICY SET other LIMITS SW 30 3600 FIXED")
		app := f.Dial().As(admin, "~api:*", "~all:one", "+rl.use", "+multi", "+exec", "+eval")
		passes := []string{"RL.USE api k AND all one", "RL.USE all one 2 ANY api k 3", "RL.USE api k AND api j AND all one PEEK"}
		refused := []string{
			"RL.USE api k AND all two", "RL.USE api k AND other one", "RL.USE other k ANY api k", "RL.USE api k 1 2 3 AND all one ANY all two",
			"RL.USE api k AND all one AND api k AND other x", "RL.USE api k PEEK AND other k",
		}
		for _, words := range passes {
			require.Contains(t, app.Say(words), "*5\r\n:0\r\n", words)
		}
		deniedAll(t, app, refused[:5])
		require.Contains(t, app.Say(refused[5]), "-ERR syntax error near 'AND'", "no second policy is named")
		for _, words := range refused[:5] {
			app.Set("MULTI")
			require.Contains(t, app.Say(words), "-NOPERM", words)
			require.Contains(t, app.Say("EXEC"), "-EXECABORT")
		}
		require.Contains(t, app.Do("EVAL", "return redis.call('RL.USE','api','k','AND','all','one')", "0"), "*5\r\n:0\r\n")
		require.Contains(t, app.Do("EVAL", "return redis.call('RL.USE','api','k','AND','all','two')", "0"), "No permissions to access a key")
		for words, want := range map[string]string{
			"ACL DRYRUN app RL.USE api k AND all one AND all two":    inproc.Bulk("User app has no permissions to access the 'all:two' key"),
			"ACL DRYRUN app RL.USE api k 5 ANY all one":              inproc.OK,
			"ACL DRYRUN app RL.USE api k AND other room#5 AND api j": inproc.Bulk("User app has no permissions to access the 'other:room#5#' key"),
		} {
			require.Equal(t, want, admin.Say(words), words)
		}
		require.Contains(t, admin.Say("ACL LOG 1"), inproc.Bulk("all:two"))
	})
}

// TestSeveralPoliciesWait: a call waits until all of its policies pass, and is answered when the last
// of them has room. It ends with an error if its user loses the permission for one of the keys, even
// the last one, and it has charged nothing then.
func TestSeveralPoliciesWait(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := newLine(t, w)
		admin := f.Dial()
		admin.Set("RL.POLICY SET a LIMITS SW 1 60 FIXED ANCHOR FIRST", "RL.POLICY SET b LIMITS CC 1 600", "RL.POLICY SET s SHADOW LIMITS SW 1 600 FIXED ANCHOR FIRST")
		call := "RL.USE a k AND s k AND b k WITHDETAILS MEMBER m BLOCK 0"
		require.Contains(t, admin.Say("RL.USE a k AND b k MEMBER x"), "*5\r\n:0\r\n")
		first := f.queued(call)[0]
		second := f.queued("RL.USE b k AND a k MEMBER n BLOCK 200")[0]
		f.advance(time.Minute)
		inproc.Silent(first, second)
		require.Equal(t, ":0\r\n", admin.Say("EXISTS s:k"), "what cannot deny is charged with the others")
		require.Equal(t, ":1\r\n", admin.Say("CC.RELEASE b:k x"))
		first.Expect("*2\r\n" + inproc.Five(0, 1, 0, -1, 600) + "*3\r\n" + "*1\r\n" + inproc.Five(0, 1, 0, -1, 60) +
			"*1\r\n" + inproc.Five(0, 1, 0, -1, 600) + "*1\r\n" + inproc.Five(0, 1, 0, -1, 600))
		inproc.Silent(second)
		require.Equal(t, ":1\r\n", admin.Say("CC.RELEASE b:k m"))
		f.advance(time.Minute)
		second.Expect(inproc.Five(0, 1, 0, -1, 600))

		f.advance(time.Minute)
		app := f.Dial().As(admin, "+@all", "~a:*", "~s:*", "~b:*")
		f.queue(app, call)
		admin.Set("ACL SETUSER app resetkeys ~a:* ~s:*")
		require.Equal(t, ":1\r\n", admin.Say("CC.RELEASE b:k n"))
		require.Contains(t, app.Reply(), "-NOPERM")
		require.Equal(t, ":0\r\n", admin.Say("EXISTS a:k b:k"), "nothing is charged")
		f.nobodyWaits()
		for policy, counts := range map[string]string{"a": ":3\r\n", "b": ":3\r\n", "s": ":1\r\n"} {
			require.Contains(t, admin.Say("RL.POLICY GET "+policy), inproc.Bulk("allowed")+counts+inproc.Bulk("denied")+":0\r\n", policy)
		}
	})
}

// TestSeveralPoliciesAndOthers: replicas, WATCH, CLIENT TRACKING, RL.TOP and full memory treat each key
// of a call under several policies as the key of a call of its own.
func TestSeveralPoliciesAndOthers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, replica := w.Start(), w.Start()
		replica.Follow(f)
		c, other := f.Dial(), f.Dial()
		other.Set("RL.POLICY SET a LIMITS SW 1 3600 FIXED ANCHOR FIRST", "RL.POLICY SET b LIMITS SW 9 3600 FIXED ANCHOR FIRST")
		c.Set("WATCH b:k")
		require.Contains(t, other.Say("RL.USE a k AND b k"), "*5\r\n:0\r\n")
		c.Set("MULTI")
		require.Equal(t, "+QUEUED\r\n", c.Say("RL.USE a j AND b j"))
		require.Equal(t, "*-1\r\n", c.Say("EXEC"))
		c.Set("WATCH b:k")
		require.Contains(t, other.Say("RL.USE b k AND a k"), "*5\r\n:1\r\n", "a denied call changes nothing")
		c.Set("MULTI")
		require.Equal(t, "*0\r\n", c.Say("EXEC"))

		caching := f.Dial()
		caching.Command("HELLO", "3")
		require.NotContains(t, caching.Reply(), "-ERR")
		caching.Set("CLIENT TRACKING ON BCAST PREFIX b:")
		require.Contains(t, other.Say("RL.USE a cached AND b cached"), "*5\r\n:0\r\n")
		require.Contains(t, caching.Reply(), inproc.Bulk("b:cached"))
		require.Contains(t, other.Say("RL.TOP COUNT 1 WITHDETAILS"), inproc.Bulk("a:k"))
		f.Agree(replica)
		require.Contains(t, replica.Dial().Say("RL.USE a k 0 AND b k 0"), inproc.Five(0, 1, 0, -1, 3600)[:8])
		require.Contains(t, replica.Dial().Say("RL.USE a k 0 AND b k"), "-READONLY")

		c.Set("CONFIG SET maxmemory 1")
		require.Contains(t, c.Say("RL.USE b k AND a new"), "-OOM ")
		require.Contains(t, c.Say("RL.USE b k AND b new"), "-OOM ")
		c.Set("MULTI")
		require.Equal(t, "+QUEUED\r\n", c.Say("RL.USE b k AND b new"))
		require.Contains(t, c.Say("EXEC"), "OOM command not allowed")
		require.Contains(t, c.Say("RL.USE b k"), inproc.Five(0, 9, 7, -1, 3600), "nothing was charged before")
	})
}
