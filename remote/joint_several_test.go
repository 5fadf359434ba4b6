package remote

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
	"github.com/cellserver/cellserver/slidingwindow"
)

// paying is a program of a joint ask about several states. It takes a unit of part 1 of each state, whose limit is in most,
// in one ask. Then it takes one of part 2 of each, or of part 3 of the first if the ask was refused. The key of a part is
// the index of the state and the number, two digits.
type paying struct {
	most    []int64
	ask     decide.Ask
	granted bool
	runs    int
	fails   error // of the run, after the charges
}

// payer returns an ask about the states with the keys.
func payer(most []int64, keys ...string) (*decide.Ask, *paying) {
	p := &paying{most: most}
	a := &decide.Ask{Family: decide.Joint, Key: []byte(keys[0]), Program: p}
	for _, key := range keys[1:] {
		a.Others = append(a.Others, []byte(key))
	}
	return a, p
}

func (p *paying) Run(decideOn func(*decide.Ask)) error {
	p.runs++
	p.take(decideOn, 1, len(p.most))
	if p.ask.Err != nil {
		return p.ask.Err
	}
	if p.granted = !p.ask.Refused; p.granted {
		p.take(decideOn, 2, len(p.most))
	} else {
		p.take(decideOn, 3, 1)
	}
	return errors.Join(p.ask.Err, p.fails)
}

// take asks for a unit of the part of each of the first n states.
func (p *paying) take(decideOn func(*decide.Ask), part, n int) {
	p.ask = decide.Ask{Family: decide.Several, Details: make([]limit.Decision, n)}
	for i := range n {
		w := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 1 << 40, Window: 24 * 365 * time.Hour, Quantity: 1}
		if part == 1 {
			w.Limit = p.most[i]
		}
		p.ask.Clauses = append(p.ask.Clauses, decide.Clause{Key: fmt.Appendf(nil, "%d%d", i, part), Window: &w})
	}
	decideOn(&p.ask)
}

func (*paying) Guessed() bool { return true }

func (*paying) Number([]byte) (n uint8, ok bool) { return 0, false }

func (p *paying) Locate(key []byte) (state int, n uint8, ok bool) {
	return int(key[0] - '0'), key[1] - '0', len(key) == 2
}

func TestOneJointOfSeveralStatesReadsAndWritesOnce(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	keys := []string{"a{u}", "b{u}", "c{u}"}
	used := func() (all [][4]int64) {
		for _, key := range keys {
			all = append(all, sums(t, c.look([]byte("cs:"+key)), s.civil()))
		}
		return all
	}
	most := []int64{3, 1, 2}
	a, p := payer(most, keys...)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.True(t, p.granted)
	require.Equal(t, 4*time.Millisecond, s.Elapsed(), "a read and a write")
	one := [4]int64{1: 1, 2: 1}
	require.Equal(t, [][4]int64{one, one, one}, used())

	a, p = payer(most, keys...)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.False(t, p.granted)
	denied := [][4]int64{{1: 1, 2: 1, 3: 1}, one, one}
	require.Equal(t, denied, used(), "a denial changes one state")

	a, p = payer(most, keys...)
	p.fails = limit.ErrFull
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrFull)
	a, _ = payer(most, keys...)
	a.Program = looking(nil) // of one state
	s.call(t, a)
	require.Error(t, a.Err)
	require.Equal(t, denied, used(), "a run with an error changes nothing")

	s.call(t, take(t, "cell{u}", 1, 1))
	a, _ = payer(most[:2], "a{u}", "cell{u}")
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrWrongType, "of the first part")
	require.Equal(t, denied, used())
}

// TestJointsOfStatesInSeveralSlots: they cannot be written in one step.
func TestJointsOfStatesInSeveralSlots(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		l := bounds()
		l.refuseAcross = refuse
		s := serve(newCloud(1).join(network{}), l)
		a, p := payer([]int64{1, 1}, "a", "b")
		s.call(t, a)
		require.ErrorIs(t, a.Err, decide.ErrStatesApart)
		require.Zero(t, p.runs)
		require.Zero(t, s.ops.gets+s.ops.swaps)
	}
}

// TestJointsOfSeveralStatesAreBounded: with a state that is too large no state changes.
func TestJointsOfSeveralStatesAreBounded(t *testing.T) {
	l := bounds()
	l.maxValue = headerLen + mostOlder*tagLen + 2*(14+24)
	s := serve(newCloud(1).join(network{}), l)
	fill, _ := joint("b{u}", 1)
	s.call(t, fill)
	require.NoError(t, fill.Err)
	before := slices.Clone(s.look([]byte("cs:b{u}")))
	a := &decide.Ask{Family: decide.Joint, Key: []byte("a{u}"), Others: [][]byte{[]byte("b{u}")}}
	a.Program = &thirdOf{}
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrTooLarge)
	require.EqualValues(t, 1, s.count.tooLarge.Load())
	require.Empty(t, s.look([]byte("cs:a{u}")))
	require.Equal(t, before, s.look([]byte("cs:b{u}")))
}

// thirdOf takes a unit of part 3 of two states.
type thirdOf struct{ paying }

func (p *thirdOf) Run(decideOn func(*decide.Ask)) error {
	p.take(decideOn, 3, 2)
	return p.ask.Err
}

// TestHiddenStatesOfJoints: a key of the servers is no state of a client.
func TestHiddenStatesOfJoints(t *testing.T) {
	l := bounds()
	l.hidden = "hidden"
	s := serve(newCloud(1).join(network{}), l)
	a, p := payer([]int64{1, 1}, "a{hidden}", "hidden")
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
	require.Zero(t, p.runs)
}

// TestPoliciesAnswerJointsOfSeveralStates: the strictest policy of the keys answers.
func TestPoliciesAnswerJointsOfSeveralStates(t *testing.T) {
	p, local := policiesOf(map[string]string{"": Closed, "open": Opened, "local": Local})
	most := []int64{7, 7}
	a, c := payer(most, "open", "closed")
	p.answer(a, "timeout")
	require.Equal(t, decide.Unavailable("the store does not answer: timeout"), a.Err)
	require.Zero(t, c.runs)
	a, c = payer(most, "open", "open2")
	p.answer(a, "timeout")
	require.NoError(t, a.Err)
	require.True(t, c.granted)
	require.Empty(t, *local)
	a, _ = payer(most, "open", "local")
	p.answer(a, "timeout")
	require.NoError(t, a.Err)
	require.NotEmpty(t, *local)
}

// TestJointsOfSeveralStatesThatRace: with two to five servers on an engine that loses and repeats requests and replies,
// no more calls are admitted than the limits allow, and each call charges the states of all its policies or none. A call that
// gets an error may be charged, in all of them.
func TestJointsOfSeveralStatesThatRace(t *testing.T) {
	for _, servers := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			const most, lasts = 200, 2 * time.Second
			c := newCloud(uint64(servers))
			l := bounds()
			l.denials = time.Second
			// All of them charge b.
			calls := [][]string{{"a{u}", "b{u}"}, {"b{u}", "c{u}"}, {"b{u}", "a{u}", "c{u}"}}
			var granted [3]int64
			var refused, failed, runs, answered int64
			var all []*server
			for i := range servers {
				s := serve(c.join(lossy(0.03)), l)
				all = append(all, s)
				for j := range 6 {
					n := 0
					var ask func()
					ask = func() {
						if s.Elapsed() >= lasts {
							return
						}
						n++
						kind := (i + j + n) % 3
						limits := make([]int64, len(calls[kind]))
						for k, key := range calls[kind] {
							if limits[k] = most; key == "c{u}" {
								limits[k] = most / 2
							}
						}
						a, p := payer(limits, calls[kind]...)
						s.Submit([]*decide.Ask{a}, false, func() {
							answered++
							runs += int64(p.runs)
							switch {
							case a.Err != nil:
								failed++
							case p.granted:
								granted[kind]++
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
			for _, s := range all {
				require.Empty(t, s.queued())
			}
			is := map[string][4]int64{}
			for _, key := range []string{"a{u}", "b{u}", "c{u}"} {
				is[key] = sums(t, c.look([]byte("cs:"+key)), c.civil())
				require.Equal(t, is[key][1], is[key][2], "%s: a call charges both parts or none", key)
			}
			t.Logf("%v granted, %d refused, %d failed, %d runs of %d, %v", granted, refused, failed, runs, answered, is)
			require.EqualValues(t, most, is["b{u}"][1], "every call charges b")
			require.LessOrEqual(t, is["c{u}"][1], int64(most/2))
			require.LessOrEqual(t, granted[0]+granted[1]+granted[2], int64(most))
			// How often each kind of call was charged follows from the sums of its states. Calls with an error may have been.
			charged := [3]int64{is["b{u}"][1] - is["c{u}"][1], is["b{u}"][1] - is["a{u}"][1], is["a{u}"][1] + is["c{u}"][1] - is["b{u}"][1]}
			for kind, n := range charged {
				require.GreaterOrEqual(t, n, granted[kind], "calls of kind %d", kind)
				require.LessOrEqual(t, n, granted[kind]+failed, "calls of kind %d", kind)
			}
			if failed == 0 {
				require.Equal(t, refused, is["a{u}"][3]+is["b{u}"][3]+is["c{u}"][3])
			}
			require.Positive(t, refused)
			if servers > 1 {
				require.Greater(t, runs, answered-failed, "some have run twice")
			}
		})
	}
}

// TestTransactionsWithJointsOfSeveralStates: they are decided with the other asks, at one instant.
func TestTransactionsWithJointsOfSeveralStates(t *testing.T) {
	s := serve(newCloud(1).join(network{}), bounds())
	a, p := payer([]int64{2, 1}, "a{u}", "b{u}")
	b, q := payer([]int64{2, 1}, "b{u}", "a{u}")
	other := take(t, "{u}", 1<<40, 1)
	done := false
	s.Submit([]*decide.Ask{a, other, b}, true, func() { done = true })
	s.runFor(time.Second)
	require.True(t, done)
	require.NoError(t, errors.Join(a.Err, b.Err, other.Err))
	require.True(t, p.granted)
	require.False(t, q.granted, "the other has used a")
	require.Equal(t, 1, s.ops.swaps)
	require.Equal(t, states.Joint, entryIn(t, s, "cs:a{u}").Kind)
	require.Equal(t, [4]int64{1: 1, 2: 1, 3: 1}, sums(t, s.look([]byte("cs:b{u}")), s.civil()))
}

func entryIn(t testing.TB, s *server, key string) entry.Entry {
	v, err := decode(s.look([]byte(key)))
	require.NoError(t, err)
	return v.entry
}
