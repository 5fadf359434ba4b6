package descriptors

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
	"github.com/cellserver/cellserver/rls/wire"
)

// replies is a Caller whose replies do not depend on the commands, which it notes.
type replies struct {
	text     string
	err      error
	commands []byte
	rounds   int
}

func (r *replies) Do(commands []byte, _ int, out []byte) ([]byte, error) {
	r.rounds++
	r.commands = append(r.commands[:0], commands...)
	return append(out, r.text...), r.err
}

// reply is the reply to a call of RL.USE.
func reply(refused, limit, remaining, reset int64) string {
	five := clause(refused, limit, remaining, reset)
	return "*2\r\n" + five + "*1\r\n" + five
}

// clause is a decision in a reply.
func clause(refused, limit, remaining, reset int64) string {
	return fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%d\r\n:-1\r\n:%d\r\n", refused, limit, remaining, reset)
}

// open returns a service with one rule for each of the domains.
func open(t testing.TB, o rls.Options, domains ...string) *Service {
	var files []rulefile.File
	for _, d := range domains {
		files = append(files, rulefile.File{Name: d + ".yaml", Text: []byte("domain: " + d + "\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 9}}]")})
	}
	rules, _, _, faults := rls.Load(files, false)
	require.NoError(t, faults.Err())
	return &Service{
		Rules: func() *rls.Config { return rules }, Options: func() (rls.Options, wire.Headers) { return o, wire.Headers{} },
		Now: func() limit.Instant { return 0 }, Counts: new(Counts),
	}
}

// about sets the request of c to one about the values of the key k.
func about(c *Call, domain string, values ...string) {
	c.Request = rls.Request{Domain: []byte(domain)}
	for _, v := range values {
		c.Request.Descriptors = append(c.Request.Descriptors, rls.Descriptor{Entries: []rls.Entry{{Key: []byte("k"), Value: []byte(v)}}})
	}
}

func TestAnswers(t *testing.T) {
	s, by, c := open(t, rls.Options{}, "d"), &replies{text: reply(0, 9, 8, 7001) + reply(1, 9, 0, -1)}, new(Call)
	about(c, "d", "a", "b")
	require.NoError(t, s.Answer(c, by))
	require.Equal(t, 1, by.rounds, "one round for all descriptors")
	require.Equal(t, 2, strings.Count(string(by.commands), "RL.USE"))
	require.Equal(t, rls.OverLimit, c.Answer.Overall)
	require.EqualValues(t, 8, c.Answer.Statuses[0].Remaining)
	require.EqualValues(t, 8, c.Answer.Statuses[0].Reset, "rounded up")
	require.EqualValues(t, 31536000, c.Answer.Statuses[1].Reset, "a block without an end")
	about(c, "unknown", "a")
	require.NoError(t, s.Answer(c, by))
	require.Equal(t, rls.OK, c.Answer.Overall)
	require.Equal(t, 1, by.rounds, "nothing to ask")
}

func TestTogetherLooksFirst(t *testing.T) {
	s, by, c := open(t, rls.Options{Together: true}, "d"), &replies{text: reply(1, 9, 0, 7000) + reply(0, 9, 8, 7000)}, new(Call)
	about(c, "d", "a", "b")
	require.NoError(t, s.Answer(c, by))
	require.Equal(t, 2, by.rounds)
	require.Contains(t, string(by.commands), "$1\r\na\r\n$1\r\n1\r\n")
	require.Contains(t, string(by.commands), "$1\r\nb\r\n$1\r\n0\r\n", "the descriptor that is not over is not charged")
}

func TestFailures(t *testing.T) {
	s, c := open(t, rls.Options{}, "d"), new(Call)
	lost := errors.New("lost")
	for _, of := range []struct {
		text string
		err  error
		want error
		code Code
	}{
		{"-NOPERM no\r\n", nil, resp.Error("NOPERM no"), PermissionDenied},
		{reply(0, 9, 8, 7) + "-OOM no\r\n", nil, resp.Error("OOM no"), Unavailable},
		{"-NOPOLICY no\r\n" + reply(0, 9, 8, 7), nil, ErrReplaced, Unavailable},
		{reply(0, 9, 8, 7), nil, use.ErrReply, Unavailable},
		{reply(0, 9, 8, 7) + reply(0, 9, 8, 7) + "+\r\n", nil, use.ErrReply, Unavailable},
		{"", lost, lost, Unavailable},
		{"", resp.Error("NOAUTH no"), resp.Error("NOAUTH no"), PermissionDenied},
		{"", resp.Error("DENIED no"), resp.Error("DENIED no"), PermissionDenied},
	} {
		about(c, "d", "a", "b")
		err := s.Answer(c, &replies{text: of.text, err: of.err})
		require.ErrorIs(t, err, of.want)
		require.Equal(t, of.code, CodeOf(err), "%v", err)
	}
	c.Request = rls.Request{}
	require.Equal(t, Unknown, CodeOf(s.Answer(c, nil)))
	about(c, "d", make([]string, rls.MaxDescriptors+1)...)
	require.Equal(t, InvalidArgument, CodeOf(s.Answer(c, nil)))
	require.Equal(t, []Count{{"other", InvalidArgument, 1}, {"other", PermissionDenied, 3}, {"other", Unknown, 1}, {"other", Unavailable, 5}}, s.Counts.Snapshot())
}

// TestCountsAreBounded: requests cannot name domains for the counts, and rules with many domains share a place.
func TestCountsAreBounded(t *testing.T) {
	var domains []string
	for i := range maxDomains + 5 {
		domains = append(domains, fmt.Sprint("d", i))
	}
	s, by, c := open(t, rls.Options{}, domains...), &replies{text: reply(0, 9, 8, 7)}, new(Call)
	for i := range maxDomains + 10 {
		about(c, fmt.Sprint("d", i), "a")
		require.NoError(t, s.Answer(c, by))
	}
	list := s.Counts.Snapshot()
	require.Len(t, list, maxDomains+1)
	require.Equal(t, Count{"other", OK, 10}, list[maxDomains])
	s.Counts.Refused()
	require.Contains(t, s.Counts.Snapshot(), Count{"other", InvalidArgument, 1})
	require.Equal(t, "invalid_argument", InvalidArgument.String())
	s.Counts = nil
	s.Counts.Refused()
	require.NoError(t, s.Answer(c, by), "nothing is counted")
}

func BenchmarkAnswer(b *testing.B) {
	s, by, c := open(b, rls.Options{}, "d"), &replies{text: reply(0, 9, 8, 7000)}, new(Call)
	about(c, "d", "a")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Answer(c, by); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnswersAllocateNothing(t *testing.T) {
	s, by, c := open(t, rls.Options{}, "d"), &replies{text: reply(0, 9, 8, 7000)}, new(Call)
	about(c, "d", "a")
	answer := func() { _ = s.Answer(c, by) }
	answer()
	require.Zero(t, testing.AllocsPerRun(100, answer))
}
