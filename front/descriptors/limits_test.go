package descriptors

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// limitsFile has two limits for requests with k, and one for all requests with m.
const limitsFile = `
- {namespace: ns, name: key, max_value: 9, seconds: 60, conditions: [], variables: ["descriptors[0].k"]}
- {namespace: ns, name: long, max_value: 99, seconds: 3600, conditions: [], variables: ["descriptors[0].k"]}
- {namespace: ns, name: one, max_value: 9, seconds: 60, conditions: ["has(descriptors[0].m)"], variables: []}`

// withLimits returns a service with the limits of limitsFile, and rules for the given domains, unless there are none.
func withLimits(t testing.TB, domains ...string) *Service {
	t.Helper()
	s := open(t, rls.Options{}, domains...)
	if len(domains) == 0 {
		s.Rules = nil
	}
	c, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: []byte(limitsFile)})
	require.NoError(t, faults.Err())
	s.Limits, s.LimitsHeaders = func() *limitador.Config { return c }, func() bool { return true }
	return s
}

// These are replies to a call of RL.USE that names two policies.
var (
	bothPass  = "*2\r\n" + clause(0, 9, 8, 7001) + "*2\r\n*1\r\n" + clause(0, 9, 8, 7001) + "*1\r\n" + clause(0, 99, 98, 1000)
	oneDenies = strings.NewReplacer(":0\r\n:9\r\n:8", ":1\r\n:9\r\n:0").Replace(bothPass)
	oneBlocks = "*2\r\n" + clause(1, 9, 0, -1) + "*2\r\n*1\r\n" + clause(1, 9, 0, -1) + "*-1\r\n"
)

// fields returns the header fields of the answer.
func fields(c *Call) (all []string) {
	for _, f := range c.Limited.Fields() {
		all = append(all, f.Name+": "+string(f.Value))
	}
	return all
}

func TestAnswersOfLimits(t *testing.T) {
	s, c := withLimits(t), new(Call)
	ask := func(replies *replies, hits uint64) {
		t.Helper()
		about(c, "ns", "a")
		c.Request.Hits = hits
		require.NoError(t, s.Answer(c, replies))
	}
	by := &replies{text: bothPass}
	ask(by, 0)
	require.Equal(t, rls.OK, c.Answer.Overall)
	require.Equal(t, 1, by.rounds)
	require.Equal(t, string(use.AppendAll(nil, []use.Part{{Policy: []byte("lim.ns.key"), Key: []byte("a"), Quantity: 1}, {Policy: []byte("lim.ns.long"), Key: []byte("a"), Quantity: 1}}, "")), string(by.commands))
	require.Equal(t, []string{`X-RateLimit-Limit: 9, 9;w=60;name="key", 99;w=3600;name="long"`, "X-RateLimit-Remaining: 8", "X-RateLimit-Reset: 8"}, fields(c))
	require.Contains(t, string(c.AppendResponse(nil)), "X-RateLimit-Remaining")

	ask(&replies{text: oneDenies}, 3)
	require.Equal(t, rls.OverLimit, c.Answer.Overall)
	require.Equal(t, []string{`X-RateLimit-Limit: 9, 9;w=60;name="key", 99;w=3600;name="long"`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 8"}, fields(c))
	ask(&replies{text: oneBlocks}, 1)
	require.Equal(t, rls.OverLimit, c.Answer.Overall)
	require.Equal(t, []string{`X-RateLimit-Limit: 9, 9;w=60;name="key"`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 31536000"}, fields(c))
	ask(&replies{text: strings.Replace(oneDenies, ":1", ":0", 1)}, 1)
	require.Equal(t, rls.OK, c.Answer.Overall, "an exemption")

	c.Request = rls.Request{Domain: []byte("none")}
	require.NoError(t, s.Answer(c, nil), "nothing is asked about")
	require.Equal(t, rls.OK, c.Answer.Overall)
	require.Empty(t, fields(c))
	require.Equal(t, []Count{{"ns", OK, 2}, {"ns", OverLimit, 2}, {"other", OK, 1}}, s.Counts.Snapshot())
	s.LimitsHeaders = func() bool { return false }
	ask(&replies{text: bothPass}, 1)
	require.Empty(t, fields(c))
}

// TestWays: a check looks, and a report charges each limit by itself and is never denied.
func TestWays(t *testing.T) {
	s, by, c := withLimits(t), &replies{text: oneDenies}, new(Call)
	about(c, "ns", "a")
	require.NoError(t, s.AnswerLimits(c, Check, 1, true, by))
	require.Equal(t, rls.OverLimit, c.Answer.Overall)
	require.Contains(t, string(by.commands), "\r\nPEEK\r\n")
	require.Empty(t, fields(c))

	by.text = reply(1, 9, 0, 7000) + reply(0, 99, 98, 7000)
	require.NoError(t, s.AnswerLimits(c, Report, 3, true, by))
	require.Equal(t, rls.OK, c.Answer.Overall)
	require.Empty(t, fields(c))
	require.Equal(t, 2, strings.Count(string(by.commands), "\r\n$1\r\n3\r\n$5\r\nFORCE\r\n"))
	require.Equal(t, 2, by.rounds, "one round for all limits")

	c.Request.Descriptors[0].Entries = []rls.Entry{{Key: []byte("m")}}
	by.text = reply(1, 9, 0, 7000)
	require.NoError(t, s.AnswerLimits(c, Whole, 1, true, by))
	require.Equal(t, rls.OverLimit, c.Answer.Overall, "one policy")
	require.Contains(t, string(by.commands), "$10\r\nlim.ns.one\r\n$3\r\nall\r\n")
}

// TestWhichAnswers: namespaces are those of the limits, also if rules have them, and without rules all domains are.
func TestWhichAnswers(t *testing.T) {
	s, c := withLimits(t, "d", "ns"), new(Call)
	about(c, "d", "a")
	require.NoError(t, s.Answer(c, &replies{text: reply(1, 9, 0, 7000)}))
	require.Len(t, c.Answer.Statuses, 1)
	require.Empty(t, fields(c))
	about(c, "ns", "a")
	require.NoError(t, s.Answer(c, &replies{text: bothPass}))
	require.Empty(t, c.Answer.Statuses)
	require.NotEmpty(t, fields(c))
	about(c, "d", "a")
	require.NoError(t, s.Answer(c, &replies{text: reply(1, 9, 0, 7000)}))
	require.Empty(t, fields(c), "the fields of the answer before")

	s.Limits = func() *limitador.Config { return nil }
	require.Equal(t, Unknown, CodeOf(s.AnswerLimits(c, Check, 1, false, nil)), "no limits are loaded")
	about(c, "ns", "a")
	require.NoError(t, s.Answer(c, &replies{text: reply(0, 9, 8, 7000)}))
	require.Len(t, c.Answer.Statuses, 1, "the rules answer")
}

func TestFailuresOfLimits(t *testing.T) {
	s, c := withLimits(t), new(Call)
	for _, of := range []struct {
		way  Way
		text string
		want error
	}{
		{Whole, "-NOPERM no\r\n", resp.Error("NOPERM no")},
		{Whole, "-NOPOLICY no\r\n", ErrReplaced},
		{Whole, reply(0, 9, 8, 7), use.ErrReply},
		{Whole, bothPass + "+\r\n", use.ErrReply},
		{Check, "", use.ErrReply},
		{Report, bothPass, use.ErrReply},
		{Report, reply(0, 9, 8, 7), use.ErrReply},
		{Report, reply(0, 9, 8, 7) + "-OOM no\r\n", resp.Error("OOM no")},
	} {
		about(c, "ns", "a")
		require.ErrorIs(t, s.AnswerLimits(c, of.way, 1, true, &replies{text: of.text}), of.want, "%q", of.text)
	}
	c.Request = rls.Request{}
	require.ErrorIs(t, s.Answer(c, nil), rls.ErrNoDomain)
	about(c, "ns", make([]string, rls.MaxDescriptors+1)...)
	require.Equal(t, InvalidArgument, CodeOf(s.Answer(c, nil)))
}

func TestAnswersOfLimitsAllocateNothing(t *testing.T) {
	s, by, c := withLimits(t), &replies{text: bothPass}, new(Call)
	about(c, "ns", "a")
	answer := func() { _ = s.Answer(c, by) }
	answer()
	require.Zero(t, testing.AllocsPerRun(100, answer))
	require.Positive(t, c.Bytes())
}
