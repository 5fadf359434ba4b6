//go:build real

package compat_test

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
)

// Words of rules and calls of commands that Redis and we have. Those of other categories in
// Redis 7.0 than later are left out.
var (
	aclRules = strings.Fields("+get -get +set +mset -mset +rename +lmove +del -del +unlink +exists +expire +ttl +hset +hdel +hget +zadd +zpopmin +sadd +spop " +
		"+publish +subscribe +psubscribe +eval +eval_ro -eval +config +config|get -config|set +config|set +client +client|list -client|list +acl|whoami +select|0 +select|1 +select " +
		"+object -object|encoding +memory|usage +ping +echo|hello +@string -@string +@hash +@list +@set +@sortedset +@pubsub +@scripting +@fast -@fast +@slow -@slow +@read +@write -@write " +
		"+@keyspace +@connection -@dangerous +@admin -@admin +@blocking +@transaction +@all -@all allcommands nocommands " +
		"~a ~a* ~*1 ~b? ~[cd]* ~h\\*x %R~a* %R~b* %R~c %W~a %W~b* %W~c* %RW~d allkeys ~* resetkeys &n &n* &news.? allchannels resetchannels &* clearselectors")
	aclCalls = []string{
		"GET %", "STRLEN %", "SET % v", "SET % v GET", "SET % v EX 10 GET", "MSET % v % v", "MSETNX % v % v", "MGET % % %", "APPEND % v", "SETRANGE % 0 v",
		"GETDEL %", "GETEX %", "INCR %", "SETEX % 1 v", "SETNX % v", "DEL % %", "UNLINK %", "EXISTS % %", "TYPE %", "TTL %", "EXPIRE % 1", "PERSIST %",
		"RENAME % %", "RENAMENX % %", "HSET % f v", "HGET % f", "HDEL % f", "HLEN %", "HINCRBY % f 1", "LPUSH % v", "LPOP %", "LLEN %", "LRANGE % 0 1", "LREM % 0 v",
		"LMOVE % % LEFT RIGHT", "RPOPLPUSH % %", "BLPOP % % 0", "BLMOVE % % LEFT RIGHT 0", "LMPOP 2 % % LEFT", "BLMPOP 0 1 % LEFT", "SADD % m", "SREM % m", "SPOP %", "SCARD %", "SMEMBERS %",
		"ZADD % 1 m", "ZREM % m", "ZPOPMIN %", "ZCARD %", "ZSCORE % m", "ZMPOP 2 % % MIN", "BZPOPMIN % 0", "PUBLISH # m", "SPUBLISH # m", "SUBSCRIBE # #", "PSUBSCRIBE # #", "SSUBSCRIBE #",
		"EVAL s 2 % %", "EVAL_RO s 1 %", "EVALSHA s 1 %", "EVAL s 0", "WATCH % %", "OBJECT ENCODING %", "OBJECT REFCOUNT %", "MEMORY USAGE %",
		"CONFIG GET x", "CONFIG SET x y", "CLIENT LIST", "CLIENT ID", "ACL WHOAMI", "ACL LIST", "SELECT 0", "SELECT 1", "PING", "ECHO hello", "ECHO x",
		"KEYS *", "SCAN 0", "DBSIZE", "FLUSHALL", "INFO", "MULTI", "EXEC", "TIME", "SCRIPT LOAD x", "AUTH x", "HELLO 3", "RESET", "QUIT", "UNSUBSCRIBE #",
	}
	aclKeys     = strings.Fields("a a1 ab b b1 bb c c1 d dd x1 h*x hx zz")
	aclChannels = strings.Fields("n news.a news.ab x n* news.?")
)

// randomRules are a few words for ACL SETUSER, some of them between parentheses.
func randomRules(r *rand.Rand) (rules []string) {
	for range 1 + r.IntN(8) {
		rule := aclRules[r.IntN(len(aclRules))]
		if r.IntN(6) == 0 && rule != "clearselectors" {
			rule = "(" + rule + " " + aclRules[r.IntN(len(aclRules)-1)] + ")"
		}
		rules = append(rules, rule)
	}
	return rules
}

// randomCall is a call with keys and channels filled in.
func randomCall(r *rand.Rand) []string {
	call := strings.Fields(aclCalls[r.IntN(len(aclCalls))])
	for i, word := range call {
		switch word {
		case "%":
			call[i] = aclKeys[r.IntN(len(aclKeys))]
		case "#":
			call[i] = aclChannels[r.IntN(len(aclChannels))]
		}
	}
	return call
}

// verdict is a reply of ACL DRYRUN without the name of the user, which Redis 7.0 leaves out.
func verdict(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	v, err := script.ReadValue(in)
	require.NoError(t, err)
	text := v.String()
	if _, what, found := strings.Cut(text, " has no permissions "); found {
		return what
	}
	return text
}

// TestRandomRulesAllowWhatRedisAllows gives a user random rules and asks both servers what it
// may do.
func TestRandomRulesAllowWhatRedisAllows(t *testing.T) {
	rounds, calls := 20_000, 50
	if testing.Short() {
		rounds = 200
	}
	w := startTwins(t, "2")
	w.ask(t, "PING")
	_, err := w.ours.Do("CONFIG", "SET", "acl-keyspace-needs-allkeys", "no") // as in Redis
	require.NoError(t, err)
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range rounds {
		set := append([]string{"ACL", "SETUSER", "u", "reset", "clearselectors", "sanitize-payload"}, randomRules(r)...)
		theirs, ours := w.ask(t, set...)
		require.Equal(t, theirs.String(), ours.String(), "%q", set)
		var asked []byte
		each := make([][]string, calls)
		for i := range each {
			each[i] = append([]string{"ACL", "DRYRUN", "u"}, randomCall(r)...)
			asked = inproc.Encode(asked, each[i]...)
		}
		_, err := w.redis.Write(asked)
		require.NoError(t, err)
		for _, call := range each {
			want := verdict(t, w.in)
			out, err := w.ours.Do(call...)
			require.NoError(t, err)
			require.Equal(t, want, verdict(t, bufio.NewReader(bytes.NewReader(out))), "%q after %q", call, set)
			if strings.HasPrefix(want, "to ") {
				refused++
			}
		}
	}
	require.Greater(t, refused, rounds*calls/10)
	require.Less(t, refused, rounds*calls*9/10)
}
