package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// runs runs a command over the admin port.
func runs(t *testing.T, o *inproc.Operated, words ...string) (status int, answer string) {
	t.Helper()
	args, err := json.Marshal(map[string]any{"args": words})
	require.NoError(t, err)
	status, answer, err = o.Post(inproc.RunHeaders(), string(args))
	require.NoError(t, err)
	return status, answer
}

// TestCommandsRunOverTheAdminPort: as the user, with the headers that no foreign page can send.
func TestCommandsRunOverTheAdminPort(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--admin-actions", "yes")
		for _, row := range []struct {
			call, want string
			status     int
		}{
			{"SET a 1", `{"reply":"OK"}`, 200},
			{"GET a", `{"reply":"1"}`, 200},
			{"GET none", `{}`, 200},
			{"NOSUCH", `{"error":"ERR unknown command 'NOSUCH', with args beginning with: "}`, 200},
			{"CL.THROTTLE k 0 1 60", `{"reply":[0,1,0,-1,60]}`, 200},
			{"EVAL local\tt={}for\ti=1,100\tdo\tt={t}end\treturn\tt 0", `{"reply":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`, 200},
			{"SUBSCRIBE a", "it is about the connection that sends it", 400},
			{"MULTI", "it is about the connection that sends it", 400},
			{"BLPOP a 0", "it would wait for other clients", 400},
			{"SETRANGE long 1048576 x", `{"reply":1048577}`, 200},
			{"GET long", "its reply is longer than 1 MiB", 422},
			{"DEL long", `{"reply":1}`, 200},
		} {
			words := strings.Split(row.call, " ")
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "\t", " ")
			}
			status, answer := runs(t, o, words...)
			require.Equal(t, row.status, status, "%s: %s", row.call, answer)
			if row.status == 200 {
				require.Equal(t, row.want, answer, row.call)
			} else {
				require.Contains(t, answer, row.want, row.call)
			}
		}
		const del = `{"args":["DEL","a"]}`
		for name, header := range map[string]http.Header{
			"no header of its own": {"Content-Type": {"application/json"}},
			"as a form sends it":   {"Content-Type": {"text/plain"}, "X-Cellserver-Action": {"1"}},
			"of another origin":    {"Content-Type": {"application/json"}, "X-Cellserver-Action": {"1"}, "Origin": {"http://evil.example"}},
			"of another site":      {"Content-Type": {"application/json"}, "X-Cellserver-Action": {"1"}, "Sec-Fetch-Site": {"cross-site"}},
		} {
			status, answer, err := o.Post(header, del)
			require.NoError(t, err)
			require.Equal(t, 403, status, "%s: %s", name, answer)
		}
		_, answer := runs(t, o, "EXISTS", "a")
		require.Equal(t, `{"reply":1}`, answer, "nothing of that has run")
		own := inproc.RunHeaders()
		own.Set("Origin", "http://"+o.AdminAddr().String())
		status, answer, err := o.Post(own, del)
		require.NoError(t, err)
		require.Equal(t, 200, status)
		require.Equal(t, `{"reply":1}`, answer)
		_, answer = runs(t, o, "CONFIG", "SET", "maxmemory", "1gb")
		require.JSONEq(t, `{"reply":"OK"}`, answer)
		require.Regexp(t, `msg="audit: CONFIG SET" client=127\.0\.0\.2:\d+ via="admin port" user=default`, o.Log.String())
	})
}

// TestActionsAreOffUnlessAllowed: admin-actions is no by default.
func TestActionsAreOffUnlessAllowed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		status, answer := runs(t, o, "PING")
		require.Equal(t, 403, status)
		require.Contains(t, answer, "admin-actions is no")
	})
}

// TestWhatTheAdminPortRunsIsKept: its effects are in the log before it is answered, like those of
// a client.
func TestWhatTheAdminPortRunsIsKept(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		for _, fsync := range []string{"always", "everysec"} {
			flags := []string{"--admin-actions", "yes", "--appendonly", "yes", "--appendfsync", fsync, "--save", ""}
			o := w.StartAdmin(flags...)
			for _, call := range []string{"SET a 1", "INCR a", "CL.THROTTLE k 0 1 3600", "EVAL return(redis.call('set','s',7)) 0", "SET gone 1", "DEL gone"} {
				status, answer := runs(t, o, strings.Fields(call)...)
				require.Equal(t, 200, status, answer)
				require.NotContains(t, answer, "error")
			}
			require.NoError(t, o.Stop())
			o.Restart()
			for call, want := range map[string]string{"GET a": `"2"`, "GET s": `"7"`, "EXISTS gone": "0", "CL.THROTTLE k 0 1 3600 0": "[0,1,0,-1,3600]"} {
				_, answer := runs(t, o, strings.Fields(call)...)
				require.Equal(t, `{"reply":`+want+`}`, answer, "%s with appendfsync %s", call, fsync)
			}
		}
	})
}

// TestTheServerStopsWhileTheAdminPortRunsCommands: each request gets an answer, or its connection
// is closed; the server ends, and what was answered is kept.
func TestTheServerStopsWhileTheAdminPortRunsCommands(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		flags := []string{"--admin-actions", "yes", "--appendonly", "yes", "--appendfsync", "no", "--save", "", "--shutdown-timeout", "1"}
		o := w.StartAdmin(flags...)
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "x", "1"))
		var asked sync.WaitGroup
		var began [4]sync.WaitGroup
		answered := make([]int, len(began))
		for i := range began {
			began[i].Add(1)
			first := sync.OnceFunc(began[i].Done)
			asked.Go(func() {
				for ; ; time.Sleep(time.Millisecond) { // so that the timeout of the stop can pass
					var args string
					if key := fmt.Sprintf("k%d", i); i%2 == 0 {
						args = `{"args":["INCR","` + key + `"]}`
					} else {
						args = `{"args":["EVAL","redis.call('get',KEYS[1]) return redis.call('incr',KEYS[1])","1","` + key + `"]}`
					}
					status, answer, err := o.Post(inproc.RunHeaders(), args)
					first()
					if err != nil {
						return // the port is closed
					}
					if status == 200 && strings.Contains(answer, `"reply"`) {
						answered[i]++
						continue
					}
					if status != 200 && status != 503 {
						t.Errorf("%d %s", status, answer)
						return
					}
				}
			})
		}
		for i := range began {
			began[i].Wait()
		}
		require.NoError(t, o.Stop())
		asked.Wait()
		o.Restart()
		for i := range answered {
			_, answer := runs(t, o, "GET", fmt.Sprintf("k%d", i))
			var kept struct{ Reply json.Number }
			require.NoError(t, json.Unmarshal([]byte(answer), &kept), answer)
			n, err := kept.Reply.Int64()
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, int64(answered[i]), "answered and lost")
			require.Positive(t, answered[i])
		}
	})
}

// TestWhatWaitsAtTheAdminPortEndsWithTheServer: a command that waits for the end of CLIENT PAUSE
// gets an error when the server stops, and does not delay the stop.
func TestWhatWaitsAtTheAdminPortEndsWithTheServer(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--admin-actions", "yes")
		require.Equal(t, inproc.OK, o.Dial().Do("CLIENT", "PAUSE", "1000000", "WRITE"))
		told := make(chan string, 1)
		go func() {
			status, answer, err := o.Post(inproc.RunHeaders(), `{"args":["SET","a","1"]}`)
			told <- fmt.Sprint(status, answer, err)
		}()
		w.Settle()
		require.Equal(t, 1, o.Engine().Executing())
		require.NoError(t, o.Stop())
		require.Equal(t, `503{"error":"the server is stopping; the command may not have run"}<nil>`, <-told)
		require.Zero(t, o.Engine().Executing())
	})
}
