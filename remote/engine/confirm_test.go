package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/remote/engine"
)

// confirm runs a script and waits for a replica, for 500 ms at most.
func confirm(t *testing.T, e *engine.Engine) (engine.Confirmed, error) {
	t.Helper()
	return e.Confirm(t.Context(), "return 'a text'", []string{"{p}:a"}, nil, 500*time.Millisecond)
}

// TestConfirmWaitsForAReplica: the node is asked for its replicas, and is waited for only if it has some.
func TestConfirmWaitsForAReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var slaves, have atomic.Pointer[string]
		var waits atomic.Int64
		f := newFake(t, func(words []string) string {
			switch {
			case words[0] == "evalsha":
				return "-NOSCRIPT No matching script.\r\n"
			case words[0] == "eval":
				return bulk("done")
			case words[0] == "info" && len(words) > 1 && words[1] == "replication":
				return bulk("# Replication\r\nrole:master\r\nconnected_slaves:" + *slaves.Load() + "\r\nother:7\r\n")
			case strings.Join(words, " ") == "wait 1 500":
				waits.Add(1)
				return *have.Load()
			}
			return healthy(words)
		})
		e := f.ready(t)
		for _, step := range []struct {
			slaves, have string
			waits        int64
			want         engine.Confirmed
		}{
			{"0", ":0\r\n", 0, engine.Confirmed{Reply: "done"}},
			{"2", ":1\r\n", 1, engine.Confirmed{Reply: "done", Replicas: 2, Have: 1}},
			{"2", ":0\r\n", 3, engine.Confirmed{Reply: "done", Replicas: 2}}, // with each try of the script
			{"0", ":0\r\n", 5, engine.Confirmed{Reply: "done"}},
			{"0", ":0\r\n", 5, engine.Confirmed{Reply: "done"}},
			{"odd", ":0\r\n", 5, engine.Confirmed{Reply: "done"}},
		} {
			slaves.Store(&step.slaves)
			have.Store(&step.have)
			is, err := confirm(t, e)
			require.NoError(t, err)
			require.Equal(t, step.want, is)
			require.Equal(t, step.waits, waits.Load())
		}
	})
}

// TestConfirmSaysWhyItFails has a node not answer a part of the question.
func TestConfirmSaysWhyItFails(t *testing.T) {
	replies := map[string]string{"evalsha": bulk("done"), "wait": ":1\r\n", "info": bulk("connected_slaves:1\r\n")}
	for name, test := range map[string]struct{ command, reply, reason string }{
		"no script":       {"evalsha", "-OOM command not allowed\r\n", "OOM"},
		"silent script":   {"evalsha", "", engine.Timeout},
		"no replicas":     {"info", "-NOPERM User cs has no permissions to run the 'info' command\r\n", "NOPERM"},
		"no right":        {"wait", "-NOPERM User cs has no permissions to run the 'wait' command\r\n", "NOPERM"},
		"silence":         {"wait", "", engine.Timeout},
		"closed":          {"wait", "close", engine.Broken},
		"no number":       {"wait", bulk("x"), engine.Broken},
		"no reply at all": {"wait", "HTTP/1.1 400 Bad Request\r\n\r\n", engine.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFake(t, func(words []string) string {
					switch {
					case words[0] == "info" && len(words) < 2 || words[0] == "info" && words[1] != "replication":
						return healthy(words)
					case words[0] == test.command:
						return test.reply
					case replies[words[0]] != "":
						return replies[words[0]]
					}
					return healthy(words)
				})
				e := f.ready(t)
				for range 2 { // WAIT is sent after the script, and with it
					start := time.Now()
					_, err := confirm(t, e)
					var why *engine.Error
					require.ErrorAs(t, err, &why)
					require.Equal(t, test.reason, why.Reason, "%v", err)
					require.LessOrEqual(t, time.Since(start), 1600*time.Millisecond)
				}
			})
		})
	}
}
