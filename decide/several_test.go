package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// several returns a Several with a limit of each kind, of five units each.
func several(t testing.TB, cells, units, tokens int64) *decide.Ask {
	q := quota(t)
	return &decide.Ask{
		Family: decide.Several, Details: make([]limit.Decision, 3),
		Clauses: []decide.Clause{
			{Key: []byte("cl"), Quota: &q, Quantity: cells},
			{Key: []byte("sw"), Window: &window(slidingwindow.Fixed, units).Window},
			{Key: []byte("tb"), Bucket: &bucket(tokenbucket.Greedy, tokens).Bucket},
		},
	}
}

// keys are the keys of the clauses.
type keys struct {
	entries [4]entry.Entry
	rounds  decide.Rounds
}

func (k *keys) ask(t testing.TB, a *decide.Ask) error {
	at := func(i int) *entry.Entry { return &k.entries[i] }
	err := k.rounds.All(a, start, at)
	require.Equal(t, start, a.Now)
	if err != nil || !k.rounds.Changes {
		return err
	}
	for i := range a.Clauses {
		answer := a.Details[i]
		require.NoError(t, k.rounds.Again(i, at(i)))
		require.Equal(t, answer, a.Details[i])
		one := key{e: k.entries[i]}
		one.apply(&k.rounds.Plan)
		k.entries[i] = one.e
	}
	k.rounds.Forget()
	return nil
}

func remaining(a *decide.Ask) (n [4]int64) {
	for i := range a.Details {
		n[i] = a.Details[i].Remaining
	}
	return n
}

func TestSeveralChargesAllOrNone(t *testing.T) {
	var k keys
	a := several(t, 1, 2, 3)
	require.NoError(t, k.ask(t, a))
	require.False(t, a.Refused)
	require.Equal(t, [4]int64{4, 3, 2}, remaining(a))
	before := k.entries
	for _, a := range []*decide.Ask{several(t, 5, 1, 1), several(t, 1, 4, 1), several(t, 1, 1, 3)} {
		require.NoError(t, k.ask(t, a))
		require.True(t, a.Refused)
		require.False(t, k.rounds.Changes)
		require.Equal(t, [4]int64{4, 3, 2}, remaining(a), "as a peek answers")
		require.Equal(t, 2*time.Second, a.Details[0].ResetAfter)
		refused := 0
		for _, d := range a.Details {
			refused += int(d.Refused)
		}
		require.Equal(t, 1, refused, "the others would have passed")
		require.Equal(t, before, k.entries)
	}
	a = several(t, 4, 3, 2)
	require.NoError(t, k.ask(t, a))
	require.False(t, a.Refused, "nothing was consumed meanwhile")
	require.Equal(t, [4]int64{}, remaining(a))
}

func TestSeveralPeeksIfOneClauseDoes(t *testing.T) {
	var k keys
	a := several(t, 1, 2, 3)
	a.Clauses[1].Peek = true
	require.NoError(t, k.ask(t, a))
	require.False(t, a.Refused)
	require.False(t, k.rounds.Changes)
	require.Equal(t, [4]int64{5, 5, 5}, remaining(a))
	require.Equal(t, slidingwindow.Whole, a.Clauses[1].Window.Charge, "the calls are as they were")
	require.Equal(t, tokenbucket.Whole, a.Clauses[2].Bucket.Charge)

	a = several(t, 6, 2, 3)
	a.Clauses[0].Peek = true
	a.Clauses[2].Bucket.Init = 4 // a refusal would store it
	require.NoError(t, k.ask(t, a))
	require.True(t, a.Refused)
	require.False(t, k.rounds.Changes, "nothing is stored for a peek")
}

func TestSeveralStoresWhatARefusalStores(t *testing.T) {
	var k keys
	a := several(t, 6, 1, 1)
	a.Clauses[2].Bucket.Init = 3
	require.NoError(t, k.ask(t, a))
	require.True(t, a.Refused)
	require.Equal(t, int64(3), a.Details[2].Remaining)
	require.Equal(t, [2]entry.Kind{}, [2]entry.Kind{k.entries[0].Kind, k.entries[1].Kind})
	require.True(t, k.entries[2].Kind.IsBucket(), "the key with INIT")
	require.False(t, a.Clauses[2].Bucket.Denied)
}

func TestSeveralTellsTheFirstError(t *testing.T) {
	text := entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("x")}
	overflow := func(a *decide.Ask) *decide.Ask {
		a.Clauses[2].Bucket.Quantity, a.Clauses[2].Bucket.Charge = 1<<62, tokenbucket.Force
		return a
	}
	for name, c := range map[string]struct {
		entries [4]entry.Entry
		ask     *decide.Ask
		order   [3]int
		want    error
	}{
		"a kind that does not fit, before all": {[4]entry.Entry{text, {}, text}, several(t, 1, 1, 1), [3]int{0, 1, 2}, limit.ErrWrongType},
		"no number":                            {[4]entry.Entry{text}, several(t, 1, 1, 1), [3]int{0, 1, 2}, limit.ErrNotInteger},
		"the first of two":                     {[4]entry.Entry{text}, overflow(several(t, 1, 1, 1)), [3]int{0, 1, 2}, limit.ErrNotInteger},
		"the first of two, judged last":        {[4]entry.Entry{text}, overflow(several(t, 1, 1, 1)), [3]int{2, 1, 0}, limit.ErrNotInteger},
		"an error beside a refusal":            {[4]entry.Entry{text}, several(t, 1, 6, 1), [3]int{1, 0, 2}, limit.ErrNotInteger},
		"another kind beside a refusal":        {[4]entry.Entry{{}, {}, text}, several(t, 1, 6, 1), [3]int{1, 0, 2}, limit.ErrWrongType},
		"an error in a bucket":                 {[4]entry.Entry{}, overflow(several(t, 1, 1, 1)), [3]int{0, 1, 2}, limit.ErrOverflow},
	} {
		t.Run(name, func(t *testing.T) {
			var s decide.Rounds
			for s.Start(c.ask, start); s.Round(); {
				for _, i := range c.order {
					if !s.Judge(i, &c.entries[i]) {
						break
					}
				}
			}
			require.ErrorIs(t, s.End(), c.want)
			require.False(t, s.Changes)
			k := keys{entries: c.entries}
			require.ErrorIs(t, k.ask(t, c.ask), c.want)
		})
	}
}

// TestClauseByItself: after a race a clause is decided again, without the others.
func TestClauseByItself(t *testing.T) {
	var k keys
	a := several(t, 1, 2, 3)
	require.NoError(t, k.ask(t, a))
	var p decide.Plan
	require.NoError(t, p.Clause(1, &k.entries[1], start, a))
	require.Equal(t, decide.Store, p.Action)
	require.Equal(t, int64(1), a.Details[1].Remaining)
	require.ErrorIs(t, p.Clause(1, &k.entries[2], start, a), limit.ErrWrongType)
	require.NoError(t, p.Clause(0, &entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: gcra.AppendDecimal(nil, tatAt)}, start, a))
	require.Equal(t, int64(3), a.Details[0].Remaining)
}

func TestSeveralAllocatesNothing(t *testing.T) {
	var k keys
	a := withLease(several(t, 1, 1, 1), "a")
	at := func(i int) *entry.Entry { return &k.entries[i] }
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = k.rounds.All(a, start, at) }))
}

func TestOwnedAskRefersToNothingOfItsCommand(t *testing.T) {
	words, holder := []byte("clswtbcc"), []byte("holder")
	a := withLease(several(t, 1, 1, 1), "")
	a.Clauses[3].Lease.Member = holder
	for i := range a.Clauses {
		a.Clauses[i].Key = words[2*i:][:2]
	}
	before := a.Clauses
	buf := a.Own(nil)
	clear(words)
	clear(holder)
	*before[0].Quota, before[1].Window.Limit, before[2].Bucket.Capacity, before[3].Lease.Limit = gcra.Quota{}, 0, 0, 0
	require.Equal(t, "clswtbccholder", string(buf))
	require.Len(t, a.Details, 4)
	require.Equal(t, "holder", string(a.Clauses[3].Lease.Member))
	require.Equal(t, int64(2), a.Clauses[3].Lease.Limit)
	for i, key := range []string{"cl", "sw", "tb", "cc"} {
		require.Equal(t, key, string(a.Clauses[i].Key))
	}
	require.Equal(t, quota(t), *a.Clauses[0].Quota)
	require.Equal(t, int64(5), a.Clauses[1].Window.Limit)
	require.Equal(t, int64(5), a.Clauses[2].Bucket.Capacity)

	words = []byte("keymember")
	b := lease(concurrency.Acquire, "")
	b.Key, b.Lease.Member, b.Clauses, b.Details = words[:3], words[3:], before, a.Details
	b.Own(nil)
	clear(words)
	require.Equal(t, "key", string(b.Key))
	require.Equal(t, "member", string(b.Lease.Member))
	require.Nil(t, b.Clauses, "of an earlier ask")
	require.Nil(t, b.Details)
	b.Family = decide.Window
	b.Own(nil)
	require.Nil(t, b.Lease.Member, "of an earlier ask")
	pattern := []byte("a*")
	b.Family, b.Admin.Match = decide.Admin, pattern
	b.Own(nil)
	clear(pattern)
	require.Equal(t, "a*", string(b.Admin.Match))
	b.Forget()
	require.Nil(t, b.Key)
}

// withLease adds a clause for one of two places to a.
func withLease(a *decide.Ask, member string) *decide.Ask {
	a.Clauses = append(a.Clauses, decide.Clause{Key: []byte("cc"), Lease: &lease(concurrency.Acquire, member).Lease})
	a.Details = append(a.Details, limit.Decision{})
	return a
}

// TestSeveralWithALease: a refused call changes no lease, and a member that already has one passes.
func TestSeveralWithALease(t *testing.T) {
	var k keys
	call := func(cells int64, member string, peek bool) *decide.Ask {
		a := withLease(several(t, cells, 1, 1), member)
		a.Clauses[3].Peek = peek
		require.NoError(t, k.ask(t, a))
		require.False(t, a.Clauses[3].Lease.Peek, "the call is as it was")
		return a
	}
	a := call(1, "a", false)
	require.False(t, a.Refused)
	require.Equal(t, limit.Decision{Limit: 2, Remaining: 1, RetryAfter: limit.NoRetry, ResetAfter: time.Minute}, a.Details[3])
	require.False(t, call(1, "b", false).Refused)
	before := k.entries
	a = call(1, "c", false)
	require.True(t, a.Refused)
	require.False(t, k.rounds.Changes)
	require.Equal(t, limit.Decision{Refused: 1, Limit: 2, RetryAfter: time.Minute, ResetAfter: time.Minute}, a.Details[3])
	require.Equal(t, int64(0), a.Details[0].Refused+a.Details[1].Refused+a.Details[2].Refused)
	a = call(6, "a", false)
	require.True(t, a.Refused, "another clause refuses")
	require.Zero(t, a.Details[3].Refused, "the member would pass")
	require.True(t, call(1, "c", true).Refused)
	require.False(t, call(1, "a", true).Refused)
	require.Equal(t, before, k.entries)
	require.False(t, call(1, "a", false).Refused, "its lease begins anew")
	require.Equal(t, [4]int64{2, 2, 2, 0}, remaining(call(0, "a", true)))
}

func TestSeveralTellsOfTooManyMembers(t *testing.T) {
	var k keys
	require.NoError(t, k.ask(t, withLease(several(t, 1, 1, 1), "a")))
	before := k.entries
	a := withLease(several(t, 1, 1, 1), "b")
	a.Clauses[3].Lease.MaxMembers = 1
	require.ErrorIs(t, k.ask(t, a), limit.ErrTooManyMembers)
	require.Equal(t, before, k.entries)
	a.Clauses[3].Lease.Member = []byte("a")
	require.NoError(t, k.ask(t, a), "the member is one of them")
	k.entries[3] = k.entries[2]
	require.ErrorIs(t, k.ask(t, a), limit.ErrWrongType)
}

// TestSeveralThatOnlyLooks: only PEEK makes a lease a peek.
func TestSeveralThatOnlyLooks(t *testing.T) {
	require.True(t, several(t, 0, 0, 0).OnlyLooks())
	a := withLease(several(t, 0, 0, 0), "a")
	require.False(t, a.OnlyLooks())
	a.Clauses[0].Peek = true
	require.True(t, a.OnlyLooks())
	a.Clauses[0].Peek, a.Clauses[3].Lease.Peek = false, true
	require.True(t, a.OnlyLooks())
}

func TestUnavailableSaysWhy(t *testing.T) {
	require.Equal(t, "store is away", decide.Unavailable("store is away").Error())
}
