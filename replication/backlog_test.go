package replication_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication"
)

// pattern returns n bytes of an endless stream from offset on. Each 8 bytes of it are different.
func pattern(offset uint64, n int) []byte {
	b := make([]byte, 0, n+16)
	for k := offset / 8; len(b) < n+8; k++ {
		b = binary.LittleEndian.AppendUint64(b, k*0x9e3779b97f4a7c15)
	}
	from := int(offset % 8)
	return b[from : from+n]
}

// TestBacklogModel: a backlog has what a slice of the whole stream has, as far back as its size.
func TestBacklogModel(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		begin, size := r.Uint64N(1<<40), int64(r.IntN(200_000))
		b := replication.NewBacklog(size, begin)
		var stream []byte
		kept := begin // the offset of the first byte that no write can have overwritten
		for range 200 {
			end := begin + uint64(len(stream))
			if r.IntN(30) == 0 {
				size = int64(r.IntN(200_000))
				b.Resize(size)
			} else {
				p := pattern(end, r.IntN(1+min(40_000, 1<<r.IntN(17))))
				b.Write(p)
				stream = append(stream, p...)
				end += uint64(len(p))
			}
			room := uint64(max(size, replication.LeastBacklog))
			if end-kept > room {
				kept = end - room
			}
			require.Equal(t, end, b.End())
			require.LessOrEqual(t, b.First(), kept)
			require.LessOrEqual(t, b.End()-b.First(), room+2*replication.LeastBacklog)

			for _, from := range []uint64{b.First(), kept, end, b.First() + r.Uint64N(end-b.First()+1)} {
				dst := make([]byte, r.IntN(100_000))
				n, ok := b.Read(dst, from)
				require.True(t, ok)
				require.Equal(t, min(len(dst), int(end-from)), n)
				require.True(t, bytes.Equal(stream[from-begin:][:n], dst[:n]))
			}
			for _, from := range []uint64{begin - 1, end + 1, end + 1<<40} {
				_, ok := b.Read(make([]byte, 1), from)
				require.False(t, ok)
			}
			if b.First() > begin {
				_, ok := b.Read(make([]byte, 1), b.First()-1)
				require.False(t, ok)
			}
		}
	}
}

// TestReadersAreOvertaken: Read returns false to readers that are slower than the writer. They
// never see a byte of another offset, even while the size changes.
func TestReadersAreOvertaken(t *testing.T) {
	const begin, least = 77, 2_000
	b := replication.NewBacklog(replication.LeastBacklog, begin)
	stop := make(chan struct{})
	overtaken, read := make(chan struct{}, 1), make(chan struct{}, 1)
	signal := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() {
			dst := make([]byte, 10_000*(i+1))
			for at := uint64(begin); ; {
				select {
				case <-stop:
					return
				default:
				}
				n, ok := b.Read(dst, at)
				if !ok {
					signal(overtaken)
					at = b.First()
					continue
				}
				if n == 0 {
					runtime.Gosched()
					continue
				}
				if !bytes.Equal(dst[:n], pattern(at, n)) {
					t.Error("bytes of another offset")
					return
				}
				signal(read)
				at += uint64(n)
			}
		})
	}
	// The writer continues until both have happened, and writes at least several times the ring.
	var sawOvertaken, sawRead bool
	for i := 0; i < least || !sawOvertaken || !sawRead; i++ {
		if i%97 == 0 {
			b.Resize(int64(1+i%7) * replication.LeastBacklog)
		}
		b.Write(pattern(b.End(), 1+i%5_000))
		select {
		case <-overtaken:
			sawOvertaken = true
		case <-read:
			sawRead = true
		default:
		}
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	close(stop)
	readers.Wait()
}

// TestBacklogMemory: a backlog allocates memory as bytes arrive, and no more than its size and
// two segments.
func TestBacklogMemory(t *testing.T) {
	const size = 4 << 20
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var b *replication.Backlog
	require.Less(t, allocated(func() { b = replication.NewBacklog(size, 0) }), uint64(64<<10))
	piece := make([]byte, 100_000)
	require.Less(t, allocated(func() {
		for range 500 {
			b.Write(piece)
		}
	}), uint64(size+size/8))
	require.Zero(t, testing.AllocsPerRun(100, func() { b.Write(piece) }))
	runtime.KeepAlive(b)
}

func BenchmarkBacklogWrite(b *testing.B) {
	log := replication.NewBacklog(16<<20, 0)
	piece := make([]byte, 4096)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		log.Write(piece)
	}
}

func BenchmarkBacklogRead(b *testing.B) {
	log := replication.NewBacklog(16<<20, 0)
	log.Write(make([]byte, 8<<20))
	dst := make([]byte, 64<<10)
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		if _, ok := log.Read(dst, 1<<20); !ok {
			b.Fatal("overtaken")
		}
	}
}
