package remote

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
	"github.com/cellserver/cellserver/slidingwindow"
)

// counting is a program of a joint ask. It takes a unit of part 1, a window with the limit most, and counts in part 2
// what it was granted, and in part 3 what it was refused. A ban of part 4 comes first.
type counting struct {
	most    int64
	ask     decide.Ask // about parts 1 to 3
	bans    decide.Ask
	granted bool
	banned  bool
	runs    int
	fails   error // of the run, after part 2 was charged
}

func joint(key string, most int64) (*decide.Ask, *counting) {
	p := &counting{most: most}
	return &decide.Ask{Family: decide.Joint, Key: []byte(key), Program: p}, p
}

func (p *counting) Run(decide func(*decide.Ask)) error {
	p.runs++
	p.granted = false
	if p.banned = p.ban(decide, false); p.banned {
		return nil
	}
	if p.take(decide, "1", p.most); p.ask.Err != nil {
		return p.ask.Err
	}
	number := "2"
	if p.granted = p.ask.Decision.Allowed(); !p.granted {
		number = "3"
		p.ban(decide, true)
	}
	if p.take(decide, number, 1<<40); p.ask.Err != nil {
		return p.ask.Err
	}
	return p.fails
}

func (p *counting) take(ask func(*decide.Ask), key string, most int64) {
	p.ask = decide.Ask{Family: decide.Window, Key: []byte(key), Window: slidingwindow.Call{
		Mode: slidingwindow.Fixed, Limit: most, Window: 24 * 365 * time.Hour, Quantity: 1,
	}}
	ask(&p.ask)
}

func (p *counting) ban(ask func(*decide.Ask), denied bool) bool {
	p.bans = decide.Ask{Family: decide.Ban, Key: []byte("4"), Denied: denied, Bans: &ban.Call{
		Refusals: 1 << 40, Window: time.Hour, Block: time.Minute, Factor: ban.Whole, Max: time.Minute,
	}}
	ask(&p.bans)
	return p.bans.Decision.Refused > 0
}

func (*counting) Guessed() bool { return true }

func (p *counting) Number(key []byte) (n uint8, ok bool) {
	return key[0] - '0', len(key) == 1 && key[0] > '0' && key[0] <= '4'
}

// sums returns the units in the first three parts of a value in the engine.
func sums(t testing.TB, raw []byte, now limit.Instant) (units [4]int64) {
	t.Helper()
	v, err := decode(raw)
	require.NoError(t, err)
	if v.raw == nil {
		return units
	}
	require.Equal(t, states.Joint, v.entry.Kind)
	for _, p := range states.AppendLive(nil, v.entry.Value, now) {
		if p.Number <= 3 {
			units[p.Number] = slidingwindow.Describe(p.Entry.Kind.WindowMode(), p.Entry.Value, now, func(string, int64) {})
		}
	}
	return units
}

func TestOneJointReadsAndWritesOnce(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	a, p := joint("k", 1)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.True(t, p.granted)
	require.Equal(t, 4*time.Millisecond, s.Elapsed(), "a read and a write")
	require.Equal(t, [4]int64{1: 1, 2: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))
	s.call(t, a)
	require.False(t, p.granted)
	require.Equal(t, 6*time.Millisecond, s.Elapsed(), "nobody else writes the key: no read")
	require.Equal(t, [4]int64{1: 1, 2: 1, 3: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))

	raw := s.look([]byte("cs:k"))
	p.fails = limit.ErrFull
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrFull)
	require.Equal(t, raw, s.look([]byte("cs:k")), "a run with an error changes nothing")
	a.Program = nil
	s.call(t, a)
	require.Error(t, a.Err)
	other := take(t, "k", 1, 1)
	s.call(t, other)
	require.ErrorIs(t, other.Err, limit.ErrWrongType)
	s.call(t, take(t, "cell", 1, 1))
	a, _ = joint("cell", 1)
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
}

// TestKeysOfJointsAreAdministered: the operations on keys are about the first part.
func TestKeysOfJointsAreAdministered(t *testing.T) {
	s := serve(newCloud(1).join(network{}), bounds())
	a, _ := joint("k", 1)
	s.call(t, a)
	do := func(op decide.Op) *decide.Ask {
		a := admin("k", op)
		s.call(t, a)
		return a
	}
	require.True(t, do(decide.Exists).Result.Found)
	require.Equal(t, "ratelimit", do(decide.Type).Result.Text)
	require.ErrorIs(t, do(decide.Text).Err, limit.ErrWrongType)
	require.ErrorIs(t, do(decide.Members).Err, limit.ErrWrongType)
	require.NotEmpty(t, do(decide.Describe).Result.Fields)
	require.True(t, do(decide.Expiry).Result.HasExpiry)
	require.True(t, do(decide.Persist).Result.Done)
	require.False(t, do(decide.Expiry).Result.HasExpiry)
	require.True(t, do(decide.Delete).Result.Done)
	require.False(t, do(decide.Exists).Result.Found)
	require.Equal(t, [4]int64{2: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))
}

// TestJointsThatOnlyLookWriteNothing: nor do those of which every ask has an error.
func TestJointsThatOnlyLookWriteNothing(t *testing.T) {
	s := serve(newCloud(1).join(network{}), bounds())
	p := looking(func(ask func(*decide.Ask)) error {
		var c counting
		require.False(t, c.ban(ask, false))
		c.take(ask, "5", 1)
		require.Error(t, c.ask.Err)
		c.take(ask, "", 1)
		require.Error(t, c.ask.Err)
		for _, f := range []decide.Family{decide.Joint, 200} {
			b := decide.Ask{Family: f, Key: []byte("1")}
			ask(&b)
			require.Error(t, b.Err)
		}
		for _, f := range []decide.Family{decide.Several, decide.SettleSeveral} {
			b := decide.Ask{Family: f, Clauses: []decide.Clause{{Key: []byte("9"), Unlimited: true}}, Details: make([]limit.Decision, 1)}
			ask(&b)
			require.Error(t, b.Err)
		}
		return nil
	})
	a := &decide.Ask{Family: decide.Joint, Key: []byte("k"), Program: p}
	s.call(t, a)
	require.NoError(t, a.Err)
	require.Zero(t, s.ops.swaps)
}

// looking is a program without an answer.
type looking func(func(*decide.Ask)) error

func (p looking) Run(decide func(*decide.Ask)) error { return p(decide) }

func (looking) Guessed() bool { return true }

func (looking) Number(key []byte) (uint8, bool) {
	return 1, len(key) == 1 && key[0] < '5'
}

// TestJointsHaveABoundOfBytes: an ask that is too large changes nothing, and the others of the run are charged.
func TestJointsHaveABoundOfBytes(t *testing.T) {
	l := bounds()
	l.maxValue = headerLen + mostOlder*tagLen + 2*(14+24)
	s := serve(newCloud(1).join(network{}), l)
	a, p := joint("k", 1)
	s.call(t, a)
	require.NoError(t, a.Err)
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrTooLarge)
	require.False(t, p.granted)
	require.EqualValues(t, 2, s.count.tooLarge.Load(), "the ban and the third window")
	require.Equal(t, [4]int64{1: 1, 2: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))

	// The clauses of one ask are changed together or not at all.
	several := looking(func(ask func(*decide.Ask)) error {
		b := decide.Ask{Family: decide.Several, Details: make([]limit.Decision, 3)}
		for i := range b.Details {
			w := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 9, Window: time.Hour, Quantity: 1}
			b.Clauses = append(b.Clauses, decide.Clause{Key: []byte{byte('1' + i)}, Window: &w})
		}
		ask(&b)
		require.ErrorIs(t, b.Err, limit.ErrTooLarge)
		return nil
	})
	s.call(t, &decide.Ask{Family: decide.Joint, Key: []byte("k2"), Program: numbered{several}})
	require.Empty(t, s.look([]byte("cs:k2")))
}

// numbered has a number for each key of a digit.
type numbered struct{ looking }

func (numbered) Guessed() bool { return true }

func (numbered) Number(key []byte) (uint8, bool) { return key[0] - '0', true }

// TestJointsOfServersThatRace: with one to five servers on an engine that loses and repeats requests and replies, no
// more calls are admitted than the limit, each admitted call is charged once in both parts, and so is each refused one.
// A call that gets an error may be charged.
func TestJointsOfServersThatRace(t *testing.T) {
	for _, servers := range []int{1, 2, 5} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprint(servers, together), func(t *testing.T) {
				t.Parallel()
				const most, lasts = 700, 2 * time.Second
				c := newCloud(uint64(servers))
				l := bounds()
				l.denials, l.lease, l.leased = time.Second, 100*time.Millisecond, func(name []byte) bool { return string(name) == "k" }
				var granted, refused, failed, runs, answered int64
				var all []*server
				for range servers {
					s := serve(c.join(lossy(0.03)), l)
					all = append(all, s)
					for range 6 {
						var ask func()
						ask = func() {
							if s.Elapsed() >= lasts {
								return
							}
							a, p := joint("k", most)
							asks := []*decide.Ask{a}
							if together {
								asks = append(asks, take(t, "other", 1<<40, 1))
							}
							s.Submit(asks, together, func() {
								answered++
								runs += int64(p.runs)
								switch {
								case a.Err != nil:
									failed++
								case p.granted:
									granted++
								default:
									refused++
								}
								s.after(s.upTo(2*time.Millisecond), ask)
							})
						}
						s.after(s.upTo(time.Millisecond), ask)
					}
				}
				c.runUntil(lasts + time.Second)
				conflicts := int64(0)
				for _, s := range all {
					conflicts += s.count.conflicts.Load()
					require.Empty(t, s.queued())
					require.Zero(t, s.count.cachedDenials.Load())
					require.Zero(t, s.count.leased.Load())
				}
				is := sums(t, c.look([]byte("cs:k")), c.civil())
				t.Logf("%d granted, %d refused, %d failed, %d runs of %d, %d conflicts, %v", granted, refused, failed, runs, answered, conflicts, is)
				require.LessOrEqual(t, granted, int64(most))
				require.EqualValues(t, most, is[1])
				require.Equal(t, is[1], is[2], "both parts are charged or none")
				require.GreaterOrEqual(t, is[2], granted)
				require.GreaterOrEqual(t, is[3], refused)
				require.LessOrEqual(t, is[2]+is[3], granted+refused+failed)
				require.Positive(t, refused)
				if servers > 1 {
					require.Greater(t, runs, answered-failed, "some have run twice")
				}
			})
		}
	}
}

// TestPoliciesAnswerJoints: open admits each ask of the program, and local decides each with a share of the limit.
func TestPoliciesAnswerJoints(t *testing.T) {
	p, local := policiesOf(map[string]string{"": Closed, "open": Opened, "local": Local})
	a, c := joint("k", 7)
	p.answer(a, "timeout")
	require.Equal(t, decide.Unavailable("the store does not answer: timeout"), a.Err)
	require.Zero(t, c.runs)

	a, c = joint("open", 7)
	p.answer(a, "timeout")
	require.NoError(t, a.Err)
	require.True(t, c.granted)
	require.Equal(t, policyNow, a.Now)
	require.Equal(t, limit.Decision{Limit: 1 << 40, Remaining: 1 << 40, RetryAfter: limit.NoRetry}, c.bans.Decision)
	a, c = joint("open", 0)
	p.answer(a, "timeout")
	require.False(t, c.granted, "a limit of 0 admits nothing")
	all := looking(func(ask func(*decide.Ask)) error {
		b := &decide.Ask{
			Family: decide.Several, Clauses: []decide.Clause{{Unlimited: true}}, Details: make([]limit.Decision, 1), Err: limit.ErrFull, Repeated: true,
		}
		ask(b)
		require.NoError(t, b.Err)
		require.False(t, b.Repeated)
		require.EqualValues(t, decide.Unlimited, b.Details[0].Limit)
		return nil
	})
	for _, key := range []string{"open", "local"} {
		a = &decide.Ask{Family: decide.Joint, Key: []byte(key), Program: all}
		if key == "local" {
			a.Program = looking(func(ask func(*decide.Ask)) error {
				ask(&decide.Ask{Family: decide.Several, Clauses: []decide.Clause{{Unlimited: true}}, Details: make([]limit.Decision, 1)})
				return nil
			})
		}
		p.answer(a, "timeout")
		require.NoError(t, a.Err)
	}

	*local = nil
	a, c = joint("local", 9)
	p.answer(a, "timeout")
	require.NoError(t, a.Err)
	require.True(t, c.banned)
	require.Len(t, *local, 1)
	require.Equal(t, decide.Ban, (*local)[0].Family)
	require.Equal(t, "\x01\x02\x03\x014", string((*local)[0].Key), "of this outage")
}

// TestGoroutinesSubmitJoints: after an ask was answered at its deadline, its program belongs to the caller again, and
// no goroutine of the store runs it.
func TestGoroutinesSubmitJoints(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Millisecond, time.Minute} {
		bubble.Test(t, func(t *testing.T) { submitJoints(t, timeout) })
	}
}

func submitJoints(t *testing.T, timeout time.Duration) {
	const stores, goroutines, flights, most = 3, 4, 100, 300
	i := newInstant()
	var granted, refused, failed atomic.Int64
	var all sync.WaitGroup
	for n := range stores {
		l := bounds()
		l.timeout = timeout
		s := newStore(distant{i}, i, &refusing{}, l)
		for g := range goroutines {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(g)))
				for range flights {
					var asks []*decide.Ask
					var programs []*counting
					for range 1 + rng.IntN(3) {
						a, p := joint("k", most)
						asks, programs = append(asks, a), append(programs, p)
					}
					done := make(chan struct{})
					s.Submit(asks, rng.IntN(4) == 0, func() { close(done) })
					<-done
					for j, a := range asks {
						switch p := programs[j]; {
						case a.Err != nil:
							failed.Add(1)
						case p.granted:
							granted.Add(1)
						default:
							refused.Add(1)
						}
						*programs[j] = counting{} // the program belongs to this goroutine again
					}
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Second)
	is := sums(t, i.get([]byte("cs:k")), i.Now())
	require.LessOrEqual(t, granted.Load(), int64(most))
	require.EqualValues(t, most, is[1])
	require.Equal(t, is[1], is[2])
	require.GreaterOrEqual(t, is[2], granted.Load())
	require.GreaterOrEqual(t, is[3], refused.Load())
	require.LessOrEqual(t, is[2]+is[3], granted.Load()+refused.Load()+failed.Load())
	require.Equal(t, timeout < time.Second, failed.Load() > 0)
}
