package replication_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/replication"
)

// playOnce makes f serve the first connection to an address. Later connections are only held
// open.
func (w *web) playOnce(address string, f func(conn net.Conn, r *bufio.Reader)) {
	over := make(chan struct{})
	w.t.Cleanup(func() { close(over) })
	first := true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plays[address] = func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		w.mu.Lock()
		mine := first
		first = false
		w.mu.Unlock()
		if mine {
			f(conn, bufio.NewReader(conn))
			return
		}
		<-over
	}
}

// answers plays a primary that answers each command with the next of lines, and then closes the
// connection. The channel has the commands that it received.
func (w *web) answers(address string, lines ...string) (told chan []string) {
	told = make(chan []string, len(lines)+1)
	w.playOnce(address, func(conn net.Conn, r *bufio.Reader) {
		defer close(told)
		for _, line := range lines {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			told <- words
			if _, err := io.WriteString(conn, line); err != nil {
				return
			}
		}
	})
	return told
}

const someID = "0123456789abcdef0123456789abcdef01234567"

// TestHandshakeAnswers: after an invalid answer the link ends with a reason, and the state is
// unchanged.
func TestHandshakeAnswers(t *testing.T) {
	ok := "+OK\r\n"
	long := strings.Repeat("x", 5000)
	rows := map[string]struct {
		lines []string
		want  string
	}{
		"PING is refused":            {[]string{"-MISCONF no\r\n"}, `the primary answered PING with "-MISCONF no"`},
		"PING is answered otherwise": {[]string{":1\r\n"}, `answered PING with ":1"`},
		"a line without end":         {[]string{long}, "a line is longer than 4096 bytes"},
		"a line that is long":        {[]string{"+" + long + "\r\n"}, "a line is longer than 4096 bytes"},
		"nothing":                    {nil, "PING"},
		"half a line":                {[]string{"+PO"}, "reading the answer to PING: EOF"},
		"loading":                    {[]string{"-LOADING later\r\n"}, `answered PING with "-LOADING later"`},
		"REPLCONF is refused":        {[]string{"+PONG\r\n", "-NOAUTH first\r\n"}, `answered REPLCONF listening-port with "-NOAUTH first"`},
		"REPLCONF is not known": {
			[]string{"-NOAUTH first\r\n", "-ERR what?\r\n", "-ERR what?\r\n", "-ERR what?\r\n", "-LOADING later\r\n"},
			`answered PSYNC with "-LOADING later"`,
		},
		"no link":              {[]string{"+PONG\r\n", ok, ok, ok, "-NOMASTERLINK later\r\n"}, `answered PSYNC with "-NOMASTERLINK later"`},
		"down":                 {[]string{"+PONG\r\n", ok, ok, ok, "-MASTERDOWN later\r\n"}, `answered PSYNC with "-MASTERDOWN later"`},
		"a Redis":              {[]string{"+PONG\r\n", ok, ok, ok, "\n\n+FULLRESYNC " + someID + " 1\r\n"}, "is a Redis or Valkey"},
		"an old Redis":         {[]string{"+PONG\r\n", ok, ok, ok, "+CONTINUE\r\n"}, "is a Redis or Valkey"},
		"no id":                {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNC 1 cell1\r\n"}, "out of form"},
		"a wrong id":           {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNC " + someID[1:] + "X 1 cell1\r\n"}, "out of form"},
		"no offset":            {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNC " + someID + " -1 cell1\r\n"}, "no offset"},
		"a large offset":       {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNC " + someID + " 9223372036854775808 cell1\r\n"}, "no offset"},
		"an offset at the end": {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNC " + someID + " 4611686018427387904 cell1\r\n"}, "no offset"},
		"more words":           {[]string{"+PONG\r\n", ok, ok, ok, "+CONTINUE " + someID + " 1 cell1\r\n"}, "out of form"},
		"a word too many":      {[]string{"+PONG\r\n", ok, ok, ok, "+CONTINUE " + someID + " " + someID + " " + someID + " cell1\r\n"}, "out of form"},
		"a release elsewhere":  {[]string{"+PONG\r\n", ok, ok, ok, "+CONTINUE tzdata:2025c " + someID + " cell1\r\n"}, "out of form"},
		"a release alone":      {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNC tzdata:2025c cell1\r\n"}, "out of form"},
		"not asked for":        {[]string{"+PONG\r\n", ok, ok, ok, "+CONTINUE " + someID + " cell1\r\n"}, "was not asked for"},
		"another command":      {[]string{"+PONG\r\n", ok, ok, ok, "+FULLRESYNCED x cell1\r\n"}, `answered PSYNC with "+FULLRESYNCED x cell1"`},
		"binary":               {[]string{"\x00\x01\xff\r\n"}, `answered PING with "\x00\x01\xff"`},
		"empty lines":          {[]string{"+PONG\r\n", ok, ok, ok, strings.Repeat("\n", 20_000)}, "nothing but empty lines"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				b := w.start("b:2", 0)
				require.True(t, b.client().put("own", "x"))
				w.answers("evil:1", row.lines...)
				b.node.ReplicaOf("evil", "1")
				eventually(t, row.want, func() bool { return strings.Contains(b.info()["cell_repl_error"], row.want) })
				require.Equal(t, "down", b.info()["master_link_status"])
				require.Len(t, b.state(), 1)
				require.False(t, b.host.loading.Load())
			})
		})
	}
}

// TestReplicaWarnsOfAnotherTzdata: a primary with another release is told to the log, with a data set or without.
func TestReplicaWarnsOfAnotherTzdata(t *testing.T) {
	const warning = "the primary has another release of tzdata"
	for words, warns := range map[string]bool{
		"": false, " " + someID: false, " tzdata:" + calendar.Release(): false, " tzdata:": false,
		" tzdata:2019c": true, " " + someID + " tzdata:2019c": true,
	} {
		bubble.Test(t, func(t *testing.T) {
			w := newWeb(t)
			var log bytes.Buffer
			b := w.startWith("b:2", 0, func(o *replication.Options) {
				o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			out := (&speech{t: t, offset: begin}).block("k").time().whole(1, 1).out
			w.says("kind:1", "+FULLRESYNC "+someID+" 1000"+words+" cell1\r\n", out)
			b.node.ReplicaOf("kind", "1")
			eventually(t, "whole", func() bool { return b.info()["master_replid"] == someID && b.node.IsWhole() })
			b.stop()
			require.Equal(t, warns, strings.Contains(log.String(), warning), "%q", words)
			require.Equal(t, warns, strings.Contains(log.String(), "ours="+calendar.Release()+" primary=2019c"), "%q", words)
		})
	}
}

// TestHandshakeCommands checks the commands that a replica sends, and their order.
func TestHandshakeCommands(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		b := w.start("b:2", 0)
		set := func(f func(s *replication.Settings)) {
			s := *b.set.Load()
			f(&s)
			b.set.Store(&s)
		}
		play := func(lines ...string) (all [][]string) {
			told := w.answers("evil:1", lines...)
			b.node.ReplicaOf("evil", "1")
			for words := range told {
				all = append(all, words)
			}
			b.node.Promote(nil)
			b.awaitPrimary()
			return all
		}
		capa := []string{"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "cell1", "capa", "data:" + b.keeper.DataSet(), "capa", "tzdata:" + calendar.Release()}
		five := []string{"+PONG\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "-ERR no\r\n"}
		require.Equal(t, [][]string{
			{"PING"}, {"REPLCONF", "listening-port", "2"}, {"REPLCONF", "ip-address", "b"}, capa, {"PSYNC", "?", "-1"},
		}, play(five...))

		set(func(s *replication.Settings) { s.AnnounceIP, s.Password = "", "secret" })
		id, offset := b.info()["master_replid"], b.source.Offset()
		require.Equal(t, [][]string{
			{"PING"}, {"AUTH", "secret"}, {"REPLCONF", "listening-port", "2"}, capa, {"PSYNC", id, itoa(offset + 1)},
		}, play(five...), "a former primary knows where it is")

		set(func(s *replication.Settings) { s.User = "someone" })
		require.Equal(t, [][]string{{"PING"}, {"AUTH", "someone", "secret"}}, play("+PONG\r\n", "-WRONGPASS no\r\n"))
	})
}
