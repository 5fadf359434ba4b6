package replication_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/replication"
)

const (
	isSilent = "the primary is silent (repl-timeout)"
	isStuck  = "the primary does not go on with what it has begun to send (repl-timeout)"
)

// slowPrimary plays a slow primary. It also advances the stopwatch of the replica.
type slowPrimary struct {
	conn  net.Conn
	now   *atomic.Int64 // the replica's stopwatch
	looks *atomic.Int64 // how often the replica has read its settings
}

// sends advances the stopwatch by ten seconds and sends b. It returns false if the link has
// ended.
func (s *slowPrimary) sends(b []byte) bool {
	s.now.Add(int64(10 * time.Second))
	_, err := s.conn.Write(b)
	return err == nil
}

// repeats sends bytes every ten seconds, for longer than repl-timeout.
func (s *slowPrimary) repeats(b []byte) {
	for range 20 {
		if !s.sends(b) {
			return
		}
	}
}

// paces sends pieces of size bytes, and waits between them until the replica has checked its
// link.
func (s *slowPrimary) paces(b []byte, size int) {
	for ; len(b) > 0; b = b[size:] {
		if !s.sends(b[:size]) {
			return
		}
		for until := s.looks.Load() + 2; s.looks.Load() < until; {
			time.Sleep(time.Millisecond)
		}
	}
}

// startSlow starts a replica of a primary that calls f after its answer to PSYNC.
func startSlow(t *testing.T, f func(p *slowPrimary)) *member {
	w := newWeb(t)
	var now, looks atomic.Int64
	b := w.startWith("b:2", 0, func(o *replication.Options) {
		set := o.Settings
		o.Settings = func() replication.Settings { looks.Add(1); return set() }
		o.Stopwatch = func() time.Duration { return time.Duration(now.Load()) }
	})
	require.True(t, b.client().put("own", "x"))
	w.playOnce("slow:1", func(conn net.Conn, r *bufio.Reader) {
		for {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			if words[0] == "PSYNC" {
				break
			}
			_, _ = io.WriteString(conn, "+OK\r\n")
		}
		over := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, r); close(over) }() // ends with the connection
		f(&slowPrimary{conn, &now, &looks})
		<-over
	})
	b.node.ReplicaOf("slow", "1")
	return b
}

const fullAnswer = "+FULLRESYNC " + someID + " 1000 cell1\r\n"

// TestStuckPrimary: a primary that begins to send something and does not continue loses the link
// within repl-timeout, even if it sends keepalives meanwhile. INFO has the reason.
func TestStuckPrimary(t *testing.T) {
	alive := (&speech{}).alive().out
	said := func(f func(s *speech)) []byte {
		s := &speech{t: t, offset: begin}
		f(s)
		return append([]byte(fullAnswer), s.out...)
	}
	rows := map[string]struct {
		want   string
		begins []byte // sent at once
		then   []byte // sent every ten seconds
	}{
		"no answer":                  {isSilent, nil, nil},
		"an answer without end":      {isStuck, nil, []byte("+")},
		"half an answer":             {"(repl-timeout)", []byte(fullAnswer[:20]), nil},
		"nothing behind the answer":  {isSilent, []byte(fullAnswer), nil},
		"alive and no state":         {isStuck, []byte(fullAnswer), alive},
		"alive and half a state":     {isStuck, said(func(s *speech) { s.time().block("k") }), alive},
		"alive and no clock":         {isStuck, said(func(s *speech) { s.block("k").whole(1, 1) }), alive},
		"alive and half a record":    {isStuck, said(func(s *speech) { s.time().block("k").whole(1, 1).tail(0, 0, 1, 0, 0, 0, 0, 0, 1) }), alive},
		"alive and half a long one":  {isStuck, said(func(s *speech) { s.time().block("k").whole(1, 1).tail(0, 0, 0, 0x3f, 0, 0, 0, 0) }), alive},
		"the head of a chunk":        {isSilent, said(func(s *speech) { s.time().block("k"); s.out = s.out[:len(s.out)-4] }), nil},
		"half the head of a chunk":   {isSilent, append([]byte(fullAnswer), alive[:7]...), nil},
		"the head of a gigabyte":     {isSilent, said(func(s *speech) { s.block("k"); s.out[7] = 0x3f }), nil},
		"silence after a whole sync": {isSilent, said(func(s *speech) { s.time().block("k").whole(1, 1) }), nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				b := startSlow(t, func(p *slowPrimary) {
					_, _ = p.conn.Write(row.begins)
					p.repeats(row.then)
				})
				eventually(t, row.want, func() bool { return strings.Contains(b.info()["cell_repl_error"], row.want) })
				require.Equal(t, "down", b.info()["master_link_status"])
			})
		})
	}
}

// TestSlowPrimary: a primary that makes progress, however slowly, keeps the link.
func TestSlowPrimary(t *testing.T) {
	alive := (&speech{}).alive().out
	s := &speech{t: t, offset: begin}
	s.time().block("k").whole(1, 1)
	for name, f := range map[string]func(p *slowPrimary){
		"a block byte by byte": func(p *slowPrimary) {
			_, _ = io.WriteString(p.conn, fullAnswer)
			head := replication.ChunkHead + len(clockFrame(1e18)) + replication.ChunkHead
			_, _ = p.conn.Write(s.out[:head])
			p.paces(s.out[head:head+20], 1)
			_, _ = p.conn.Write(s.out[head+20:])
		},
		"empty lines before the answer": func(p *slowPrimary) {
			p.paces([]byte(strings.Repeat("\n", 10)), 1)
			_, _ = io.WriteString(p.conn, fullAnswer)
			_, _ = p.conn.Write(s.out)
		},
		"a record byte by byte": func(p *slowPrimary) {
			_, _ = io.WriteString(p.conn, fullAnswer)
			_, _ = p.conn.Write(s.out)
			tail := &speech{t: t, offset: s.offset}
			for _, c := range frameOf(128) {
				tail.tail(c)
			}
			p.paces(tail.out, replication.ChunkHead+1)
		},
		"alive with nothing to say": func(p *slowPrimary) {
			_, _ = io.WriteString(p.conn, fullAnswer)
			_, _ = p.conn.Write(s.out)
			p.paces(bytes.Repeat(alive, 10), len(alive))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var done atomic.Bool
				b := startSlow(t, func(p *slowPrimary) { f(p); done.Store(true) })
				eventually(t, "all is said", func() bool { return done.Load() && b.node.IsWhole() && b.info()["master_replid"] == someID })
				require.Empty(t, b.info()["cell_repl_error"])
				b.awaitUp()
			})
		})
	}
}
