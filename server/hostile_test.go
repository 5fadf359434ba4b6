package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/rlstest"
)

// victim is a server with both fronts, in a bubble.
type victim struct {
	*testing.T
	w *inproc.World
	*inproc.Node
	c *inproc.Client
}

// fronts are the ports that hostile peers attack.
var fronts = map[string]func(v *victim) net.Addr{
	"http": func(v *victim) net.Addr { return v.Server.HTTPAddr() },
	"rls":  func(v *victim) net.Addr { return v.Server.ServiceAddr() },
}

// attacked runs f for each front.
func attacked(t *testing.T, f func(v *victim, front string), options ...string) {
	for front := range fronts {
		t.Run(front, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				f(newVictim(t, w, options...), front)
			})
		})
	}
}

func newVictim(t *testing.T, w *inproc.World, options ...string) *victim {
	n := w.Start(append(onService(t, "--http-port", "8080"), options...)...)
	v := &victim{t, w, n, n.Dial()}
	v.c.Set("RL.POLICY SET api LIMITS SW 1000000 60")
	return v
}

// served requires that other clients of all ports are served.
func (v *victim) served() {
	v.Helper()
	require.Equal(v, "+PONG\r\n", v.c.Do("PING"))
	web := v.w.HTTP(v.Host)
	require.Equal(v, 200, asks(v.T, web, v.Node, "GET", "/v1/check/api/key=a", "", "", "").status)
	web.CloseIdleConnections()
	c := calls(v.T, v.w, v.Node, insecure.NewCredentials())
	_, err := limits(v.T, c, one("foo", "other"))
	require.NoError(v, err)
	require.NoError(v, c.Close())
	v.w.Settle()
}

// connect opens a connection to a front.
func (v *victim) connect(front string) net.Conn {
	v.Helper()
	conn, err := v.w.Dialer(v.Host)(v.Context(), "tcp", fronts[front](v).String())
	require.NoError(v, err)
	v.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ended returns the time until the server closes conn. What the server sends is not kept.
func (v *victim) ended(conn net.Conn) time.Duration {
	v.Helper()
	began := time.Now()
	require.NoError(v, conn.SetReadDeadline(began.Add(time.Hour)))
	_, err := io.Copy(io.Discard, conn)
	require.NotErrorIs(v, err, os.ErrDeadlineExceeded)
	return time.Since(began)
}

// peer is a client that speaks HTTP/2 by frames.
type peer struct {
	net.Conn
	*http2.Framer
	fields bytes.Buffer
	hpack  *hpack.Encoder
	last   uint32
}

// speak opens a connection of HTTP/2 with settings. drain says that what the server sends is read.
func (v *victim) speak(front string, drain bool, settings ...http2.Setting) *peer {
	v.Helper()
	p := &peer{Conn: v.connect(front)}
	p.hpack = hpack.NewEncoder(&p.fields)
	if drain {
		go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
	}
	_, err := io.WriteString(p, http2.ClientPreface)
	require.NoError(v, err)
	p.Framer = http2.NewFramer(p.Conn, nil)
	require.NoError(v, p.WriteSettings(settings...))
	return p
}

// begin begins a call: one of /v1/use or of ShouldRateLimit. It returns its stream.
func (p *peer) begin(more ...hpack.HeaderField) (uint32, error) {
	return p.beginAt("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", more...)
}

func (p *peer) beginAt(path string, more ...hpack.HeaderField) (uint32, error) {
	p.fields.Reset()
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}, more...) {
		_ = p.hpack.WriteField(f)
	}
	if p.last++; p.last%2 == 0 {
		p.last++
	}
	return p.last, p.WriteHeaders(http2.HeadersFrameParam{StreamID: p.last, BlockFragment: p.fields.Bytes(), EndHeaders: true})
}

// TestSlowPeers: a connection that does not get on with its handshake, header or body is closed in time.
func TestSlowPeers(t *testing.T) {
	attacked(t, func(v *victim, front string) {
		for name, sends := range map[string]string{
			"nothing": "", "half a preface": http2.ClientPreface[:10], "a preface": http2.ClientPreface,
			"half a frame": http2.ClientPreface + "\x00\x00\x06\x04",
		} {
			conn := v.connect(front)
			_, err := io.WriteString(conn, sends)
			require.NoError(v, err)
			require.LessOrEqual(v, v.ended(conn), 10*time.Second, name)
		}
		v.served()
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w)
		for name, sends := range map[string]string{
			"half a header": "POST /v1/use HTTP/1.1\r\nHost: x\r\n",
			"half a body":   halfBody,
			"half a chunk":  "POST /v1/use HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
		} {
			conn := v.connect("http")
			_, err := io.WriteString(conn, sends)
			require.NoError(v, err)
			require.LessOrEqual(v, v.ended(conn), 15*time.Second, name)
		}
		v.served()
	})
}

// TestFloods: a peer that sends as many frames as it likes, and reads everything or nothing, takes a bounded amount of memory
// and disturbs no other.
func TestFloods(t *testing.T) {
	for name, send := range map[string]func(p *peer) error{
		"settings": func(p *peer) error {
			return p.WriteSettings(make([]http2.Setting, 500)...)
		},
		"pings":          func(p *peer) error { return p.WritePing(false, [8]byte{1}) },
		"window updates": func(p *peer) error { return p.WriteWindowUpdate(0, 1) },
		"priorities":     func(p *peer) error { return p.WritePriority(1, http2.PriorityParam{StreamDep: 3}) },
		"unknown frames": func(p *peer) error { return p.WriteRawFrame(77, 0, 0, make([]byte, 100)) },
		"rapid reset": func(p *peer) error {
			stream, err := p.begin()
			if err != nil {
				return err
			}
			return p.WriteRSTStream(stream, http2.ErrCodeCancel)
		},
		"calls": func(p *peer) error { _, err := p.begin(); return err },
		"calls with long headers": func(p *peer) error {
			_, err := p.begin(manyFields...)
			return err
		},
		"calls of unknown methods": func(p *peer) error { _, err := p.beginAt("/x/y"); return err },
		"empty data": func(p *peer) error {
			if p.last == 0 {
				if _, err := p.begin(); err != nil {
					return err
				}
			}
			return p.WriteData(p.last, false, nil)
		},
		"small data": func(p *peer) error {
			if p.last < 400 {
				if _, err := p.begin(); err != nil {
					return err
				}
			}
			return p.WriteData(p.last, false, []byte("x"))
		},
		"continuations": func(p *peer) error {
			if p.last == 0 {
				p.last = 1
				return p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
			}
			return p.WriteContinuation(1, false, []byte{0x82})
		},
	} {
		t.Run(name, func(t *testing.T) {
			attacked(t, func(v *victim, front string) {
				before := inproc.HeapBytes()
				for _, drains := range []bool{true, false} {
					p := v.speak(front, drains)
					require.NoError(v, p.SetWriteDeadline(time.Now().Add(10*time.Second))) // before the server gives the peer up
					for range frames(name) {
						if send(p) != nil {
							break // the connection was closed, or the server does not read it
						}
					}
					v.w.Settle()
					require.Less(v, int64(inproc.HeapBytes())-int64(before), int64(24<<20), "reads: %t", drains)
					require.LessOrEqual(v, v.c.InfoNumber("mem_clients_normal"), int64(9<<20))
					v.served()
				}
			})
		})
	}
}

// frames returns how often an attack of TestFloods sends. Calls take longer than other frames, and fewer of them are enough.
func frames(attack string) int {
	if strings.HasPrefix(attack, "calls") || attack == "rapid reset" {
		return 3000
	}
	return 20_000
}

// manyFields are fields of 8 KiB in the count of HTTP/2, which take little on the wire.
var manyFields = func() (all []hpack.HeaderField) {
	for range 200 {
		all = append(all, hpack.HeaderField{Name: "a", Value: "b"})
	}
	return all
}()

// TestConnectionsAreClientsFromTheStart: a connection without a call is in CLIENT LIST, counts, and can be killed.
func TestConnectionsAreClientsFromTheStart(t *testing.T) {
	attacked(t, func(v *victim, front string) {
		idle := v.connect(front)
		v.w.Settle()
		require.Contains(v, v.c.Do("CLIENT", "LIST"), "lib-name="+front)
		require.Equal(v, ":1\r\n", v.c.Do("CLIENT", "KILL", "LADDR", fronts[front](v).String()))
		require.Zero(v, v.ended(idle))
		require.NotContains(v, v.c.Do("CLIENT", "LIST"), "lib-name="+front)

		v.c.Set("CONFIG SET max-clients-per-ip 3") // one is v.c
		first, second, third := v.connect(front), v.connect(front), v.connect(front)
		require.Zero(v, v.ended(third))
		v.c.Set("CONFIG SET max-clients-per-ip 0", "CONFIG SET maxclients 3")
		leaves := v.connect(front)
		if front == "http" {
			leaves = first // which has been idle for longest
		}
		require.Zero(v, v.ended(leaves))
		_, _ = first.Close(), second.Close()
		v.c.Set("CONFIG SET maxclients 100")
		v.served()
	})
}

// halfBody is a call whose body does not end.
const halfBody = "POST /v1/use HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"

// TestIdleConnectionsOfHTTPMakeRoom: peers of http-port that have asked for nothing, or not in full, keep out no client of any port.
func TestIdleConnectionsOfHTTPMakeRoom(t *testing.T) {
	for name, sends := range map[string]string{
		"nothing": "", "half a header": "POST /v1/use HTTP/1.1\r\n", "half a body": halfBody, "half a preface": http2.ClientPreface[:10],
		"an answered request": "GET /v1/check/api/key=a HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				v := newVictim(t, w, "--maxclients", "10")
				for range 3 {
					for range 25 {
						_, err := io.WriteString(v.connect("http"), sends)
						require.NoError(t, err)
					}
					w.Settle()
					require.Equal(t, 9, strings.Count(v.c.Do("CLIENT", "LIST"), "lib-name=http"))
					others := []*inproc.Client{v.Dial(), v.Dial(), v.Dial()}
					v.served()
					for _, c := range others {
						require.Equal(t, "+PONG\r\n", c.Do("PING"))
						_ = c.Close()
					}
					w.Settle()
				}
				v.c.Set("CONFIG SET maxclients 30")
				for range 40 {
					v.connect("http")
				}
				w.Settle()
				require.Equal(t, 29, strings.Count(v.c.Do("CLIENT", "LIST"), "lib-name=http"), "maxclients alone bounds them")
			})
		})
	}
}

// TestConnectionsOfHTTPThatAreAnsweredStay: a connection whose request is being decided makes no room.
func TestConnectionsOfHTTPThatAreAnsweredStay(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w, "--maxclients", "2")
		v.c.Set("CLIENT PAUSE 5000 WRITE")
		waits := v.connect("http")
		_, err := io.WriteString(waits, "GET /v1/check/api/key=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		w.Settle()
		for range 3 {
			require.Zero(t, v.ended(v.connect("http")))
			require.Zero(t, v.ended(v.connect("rls")))
		}
		answer, err := io.ReadAll(waits)
		require.NoError(t, err)
		require.Contains(t, string(answer), "200 OK")
	})
}

// TestMemoryOfFrontsIsThatOfClients: peers that begin calls and do not finish them take no more than maxmemory-clients.
func TestMemoryOfFrontsIsThatOfClients(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w, "--maxmemory-clients", "4mb")
		for range 8 {
			p := v.speak("rls", true)
			for range 16 {
				stream, err := p.begin()
				require.NoError(v, err)
				for range 4 {
					require.NoError(v, p.WriteData(stream, false, append([]byte{0, 0, 15, 255, 255}, make([]byte, 15_000)...)))
				}
			}
		}
		v.w.Settle()
		require.Greater(v, v.c.InfoNumber("mem_clients_normal"), int64(7<<20))
		v.w.Advance(2 * time.Second)
		require.LessOrEqual(v, v.c.InfoNumber("mem_clients_normal"), int64(4<<20))
		require.Positive(v, v.c.InfoNumber("evicted_clients"))
		v.served()
	})
}

// TestUnreadAnswersAreBounded: calls whose answers a peer does not take count as calls that have not ended.
func TestUnreadAnswersAreBounded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w)
		p := v.speak("rls", true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		message, n := rlsRequest(t, one("foo", strings.Repeat("x", 50_000))), 0
		for ; n < 250; n++ {
			stream, err := p.begin()
			if err != nil {
				break
			}
			for rest := message; len(rest) > 0; {
				part := min(len(rest), 16_000)
				_ = p.WriteData(stream, part == len(rest), rest[:part]) // until the connection is closed
				rest = rest[part:]
			}
			v.w.Settle()
			require.LessOrEqual(v, v.c.InfoNumber("mem_clients_normal"), int64(9<<20))
		}
		require.InDelta(v, 140, n, 20, "the connection was closed at 8 MiB")
		v.served()
	})
}

// TestHeaderFieldsOfCallsCount: calls without a message, with as many fields as a call may have, count with the memory of the fields.
func TestHeaderFieldsOfCallsCount(t *testing.T) {
	for name, fields := range map[string][]hpack.HeaderField{
		"short": slices.Repeat([]hpack.HeaderField{{Name: "a", Value: "b"}}, 450),
		"long":  {{Name: "a", Value: strings.Repeat("x", 15_000)}},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				v := newVictim(t, w)
				p := v.speak("rls", true)
				w.Settle()
				before, begun := inproc.HeapBytes(), 0
				for _, err := p.begin(fields...); err == nil && begun < 250; _, err = p.begin(fields...) {
					w.Settle()
					if begun++; begun == 60 {
						took, counted := int64(inproc.HeapBytes())-int64(before), v.c.InfoNumber("mem_clients_normal")
						require.Less(t, took, counted+(1<<20), "what is counted is what they take")
					}
					require.LessOrEqual(t, v.c.InfoNumber("mem_clients_normal"), int64(9<<20))
				}
				if name == "short" {
					require.Less(t, begun, 150, "the connection was closed at 8 MiB")
				}
				v.served()
			})
		})
	}
}

// rlsRequest returns a request with the prefix of gRPC.
func rlsRequest(t *testing.T, text string) []byte {
	b := rlstest.Encode(t, "Request", text)
	return append([]byte{0, byte(len(b) >> 24), byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}, b...)
}

// TestWatchesAreBounded: a connection has at most 8 calls of Watch.
func TestWatchesAreBounded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w)
		conn := calls(t, w, v.Node, insecure.NewCredentials())
		watch := func() error {
			s, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
			require.NoError(t, err)
			_, err = s.Recv()
			return err
		}
		for range 8 {
			require.NoError(t, watch())
		}
		require.Equal(t, codes.ResourceExhausted, status.Code(watch()))
		v.served()
	})
}

// TestTimeoutSparesChecksOfTheHealth: a peer that only asks for the health, or watches it, is not idle.
func TestTimeoutSparesChecksOfTheHealth(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w, "--timeout", "3")
		checks := grpc_health_v1.NewHealthClient(calls(t, w, v.Node, insecure.NewCredentials()))
		watches, stop := context.WithCancel(t.Context())
		watch, err := grpc_health_v1.NewHealthClient(calls(t, w, v.Node, insecure.NewCredentials())).Watch(watches, &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = watch.Recv()
		require.NoError(t, err)
		clients := func() int { return strings.Count(v.c.Do("CLIENT", "LIST"), "lib-name=rls") }
		for range 10 {
			_, err = checks.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			require.NoError(t, err)
			w.Advance(time.Second)
			require.Equal(t, 2, clients())
		}
		stop()
		for range 5 {
			require.Equal(t, "+PONG\r\n", v.c.Do("PING"))
			w.Advance(time.Second)
		}
		require.Zero(t, clients())
	})
}

// TestStalledPeersDoNotDelayTheStop: a server without calls stops within a second, whatever its peers do.
func TestStalledPeersDoNotDelayTheStop(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		v := newVictim(t, w, "--shutdown-timeout", "60")
		v.connect("rls")                     // in its handshake
		_, _ = v.speak("rls", false).begin() // without a message
		p := v.speak("rls", true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		stream, err := p.begin() // whose answer is not read
		require.NoError(t, err)
		require.NoError(t, p.WriteData(stream, true, rlsRequest(t, one("foo", "x"))))
		s, err := grpc_health_v1.NewHealthClient(calls(t, w, v.Node, insecure.NewCredentials())).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
		for _, sends := range []string{"", "POST /v1/use HTTP/1.1\r\n", halfBody, http2.ClientPreface} {
			_, err = io.WriteString(v.connect("http"), sends)
			require.NoError(t, err)
		}
		h2 := v.speak("http", true) // with a body that does not end
		_, err = h2.beginAt("/v1/use", hpack.HeaderField{Name: "content-type", Value: "application/json"})
		require.NoError(t, err)
		w.Settle()
		began := time.Now()
		require.NoError(t, v.Stop())
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
	})
}
