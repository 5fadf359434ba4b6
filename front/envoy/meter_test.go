package envoy

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/metadata"

	"github.com/cellserver/cellserver/internal/bubble"
)

// written returns the frames that write writes.
func written(write func(f *http2.Framer)) []byte {
	var b bytes.Buffer
	write(http2.NewFramer(&b, nil))
	return b.Bytes()
}

// TestMeter counts what calls take, however the bytes of frames are cut.
func TestMeter(t *testing.T) {
	from := append([]byte(http2.ClientPreface), written(func(f *http2.Framer) {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: make([]byte, 300), EndHeaders: true})
		_ = f.WriteData(1, false, make([]byte, 1000))
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: true})
		_ = f.WriteData(3, true, nil)
		_ = f.WriteData(9, false, make([]byte, 1000)) // no call
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, EndHeaders: true})
		_ = f.WriteRSTStream(5, http2.ErrCodeCancel)
		_ = f.WritePing(false, [8]byte{})
	})...)
	to := written(func(f *http2.Framer) {
		_ = f.WriteSettings()
		_ = f.WriteData(3, false, make([]byte, 70))
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: true})
	})
	end := written(func(f *http2.Framer) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: true, EndStream: true})
		_ = f.WriteRSTStream(1, http2.ErrCodeNo)
	})
	for size := 1; size < 60; size++ {
		var m meter
		m.begin()
		for b := range chunks(from, size) {
			require.NoError(t, m.received(b))
		}
		for b := range chunks(to, size) {
			m.sent(b)
		}
		require.EqualValues(t, 2*callCost+1000+2*frameCost, m.held.Load())
		for b := range chunks(end, size) {
			m.sent(b)
		}
		require.Zero(t, m.held.Load())
		require.Empty(t, m.calls)
	}
}

// TestMeterOfHeaderFields counts the fields that callCost has no room for, until the end of the call.
func TestMeterOfHeaderFields(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var m meter
		ctx, end := context.WithCancel(t.Context())
		usual := metadata.MD{":authority": {"ratelimit"}, "content-type": {"application/grpc"}, "user-agent": {"envoy"}, "x": make([]string, 20)}
		require.NoError(t, m.begun(ctx, usual))
		require.Zero(t, m.held.Load())
		require.NoError(t, m.begun(ctx, metadata.MD{"abcd": {strings.Repeat("x", 8000)}}))
		require.EqualValues(t, 8004*5/4+fieldCost-callFields, m.held.Load())
		end()
		synctest.Wait()
		require.Zero(t, m.held.Load())

		many := metadata.MD{"x": make([]string, 450)}
		n := 0
		for ; m.begun(t.Context(), many) == nil; n++ {
			require.LessOrEqual(t, m.held.Load(), int64(maxKept))
		}
		require.InDelta(t, maxKept/(450*fieldCost-callFields), n, 5)
		require.ErrorIs(t, m.received(append([]byte(http2.ClientPreface), written(func(f *http2.Framer) { _ = f.WriteSettings() })...)), errMemory)
	})
}

func chunks(b []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(size, len(b))
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// TestMeterRefuses: calls that take more than the bound are an error, also if their frames have one byte.
func TestMeterRefuses(t *testing.T) {
	one := written(func(f *http2.Framer) { _ = f.WriteData(1, false, []byte("x")) })
	var m meter
	m.begin()
	require.NoError(t, m.received(append([]byte(http2.ClientPreface), written(func(f *http2.Framer) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true})
	})...)))
	n := 0
	for m.received(one) == nil {
		n++
	}
	require.Equal(t, (maxKept-callCost)/(frameCost+1), n)
}

// FuzzMeter checks that bytes which are no frames neither panic nor make the sum differ from the calls.
func FuzzMeter(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01\x04\x00\x00\x00\x01"), []byte("\x00\x00\x04\x03\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, from, to []byte) {
		var m meter
		m.begin()
		m.in.skip = 0
		_ = m.received(from)
		m.sent(to)
		sum := 0
		for _, cost := range m.calls {
			sum += cost
		}
		require.EqualValues(t, sum, m.held.Load())
	})
}
