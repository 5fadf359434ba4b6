package resp_test

import (
	"bytes"
	"testing"

	"github.com/tidwall/redcon"

	"github.com/cellserver/cellserver/resp"
)

var throttleFrame = []byte("*6\r\n$11\r\nCL.THROTTLE\r\n$8\r\nuser:123\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n1\r\n")

func BenchmarkGuardThrottle(b *testing.B) {
	lim := resp.DefaultLimits()
	var g resp.Guard
	args := make([][]byte, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		args, _, _ = g.Next(throttleFrame, args, &lim)
	}
	if len(args) != 6 {
		b.Fatal(len(args))
	}
}

// BenchmarkGuardRedcon measures redcon's parser on the same frame, without the guard.
func BenchmarkGuardRedcon(b *testing.B) {
	args := make([][]byte, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		_, args, _, _, _ = redcon.ReadNextCommand(throttleFrame, args)
	}
	if len(args) != 6 {
		b.Fatal(len(args))
	}
}

// BenchmarkGuardPipeline splits 64 KiB of commands. Divide by the reported number of commands for
// the cost of one.
func BenchmarkGuardPipeline(b *testing.B) {
	lim := resp.DefaultLimits()
	stream := bytes.Repeat(throttleFrame, 64<<10/len(throttleFrame))
	var g resp.Guard
	args := make([][]byte, 0, 16)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	commands := 0
	for b.Loop() {
		for in := stream; len(in) > 0; {
			var n int
			args, n, _ = g.Next(in, args, &lim)
			in = in[n:]
			commands++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(commands), "ns/command")
}

// BenchmarkGuardDrip passes commands of 1 KiB and of nearly 1 MiB byte by byte. The cost per byte
// is the same if the guard never examines a byte twice.
func BenchmarkGuardDrip(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1000, "1MiB": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			stream := frameOf("ECHO", string(bytes.Repeat([]byte("x"), size)))
			lim := resp.DefaultLimits()
			var g resp.Guard
			args := make([][]byte, 0, 16)
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				for i := range stream {
					args, _, _ = g.Next(stream[:i+1], args, &lim)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(stream)), "ns/byte")
		})
	}
}

func BenchmarkGuardInline(b *testing.B) {
	line := []byte("CL.THROTTLE user:123 15 30 60 1\r\n")
	lim := resp.DefaultLimits()
	var g resp.Guard
	args := make([][]byte, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		args, _, _ = g.Next(line, args, &lim)
	}
}
