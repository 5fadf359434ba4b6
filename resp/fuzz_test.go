package resp_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// fuzzLimits returns the limits for a fuzz input: small enough that a short input reaches every one
// of them, or those of the server.
func fuzzLimits(choice byte) resp.Limits {
	switch choice % 4 {
	case 0:
		return resp.DefaultLimits()
	case 1:
		return resp.DefaultLimits().PreAuth()
	case 2:
		return resp.Limits{MaxArgs: 6, MaxBulk: 20, MaxCommand: 60, MaxInline: 24}
	}
	return resp.Limits{MaxArgs: 100, MaxBulk: 200, MaxCommand: 120, MaxInline: 200, PreAuthArgs: 3, PreAuthBulk: 9}
}

// randomChunks cuts a stream at random into chunks from single bytes to a few dozen.
func randomChunks(stream []byte, seed uint64) [][]byte {
	random := rand.New(rand.NewPCG(seed, 1))
	var chunks [][]byte
	for len(stream) > 0 {
		n := min(1+random.IntN(1<<random.IntN(7)), len(stream))
		chunks = append(chunks, stream[:n])
		stream = stream[n:]
	}
	return chunks
}

// FuzzGuardChunks: the result does not depend on how the bytes arrive.
func FuzzGuardChunks(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n*0\r\nECHO \"a\\x41\" b\r\n*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n"), byte(0), uint64(1))
	f.Add([]byte("*3\r\n$1\r\na\r\n$30\r\n012345678901234567890123456789\r\n$9223372036854775807\r\nb"), byte(6), uint64(1))
	f.Fuzz(func(t *testing.T, stream []byte, choice byte, seed uint64) {
		lim := fuzzLimits(choice)
		if choice&4 != 0 { // commands that are too long are skipped up to this length
			lim.MaxSkip = 100
		}
		commands, err := split(lim, stream)
		for _, chunks := range [][][]byte{bytewise(stream), randomChunks(stream, seed)} {
			again, fault := split(lim, chunks...)
			require.Equal(t, err, fault)
			require.Equal(t, commands, again)
		}
	})
}

// FuzzGuardReference: the guard and the reference parser agree.
func FuzzGuardReference(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n*0\r\nECHO \"a\\x41\" b\r\n*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n"), byte(0))
	f.Fuzz(func(t *testing.T, stream []byte, choice byte) {
		lim := fuzzLimits(choice)
		requireReference(t, lim, string(stream))
	})
}

func requireReference(t *testing.T, lim resp.Limits, stream string) {
	t.Helper()
	want, wantErr := reference(lim, stream)
	commands, err := split(lim, []byte(stream))
	require.Equal(t, wantErr, err, "%q", stream)
	require.Equal(t, want, commands, "%q", stream)
}

// randomStream joins pieces of the protocol. Most of them are valid, so that random streams get
// past the first request.
func randomStream(random *rand.Rand) string {
	pieces := []string{
		"*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n", "*2\r\n$4\r\nPING\r\n$0\r\n\r\n",
		"*2\r\n$4\r\nECHO\r\n$12\r\n0123456789ab\r\n", "*0\r\n", "*-1\r\n", "*-10\r\n", "\r\n", "\n", " \t\r\n",
		"PING\r\n", "PING\n", "ping x\r\n", "ECHO \"a\\x41\\n b\"\r\n", "ECHO 'it\\'s'\r\n", "ECHO a\"b\"\r\n", "\vECHO\fa \f\r\n",
		"*1\r\n$4\rxPINGxx", "*1\rx$4\r\nPING\r\n", "*1\r\n", "$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n",
		"*", "$", "\r", "\n", "1", "-", "0", "\"", "'", " ", "a", "\\", "\x00", "*1\r\n$-1\r\n", "*x\r\n", "*1\r\nx\r\n", "*1\r\n\r\n",
		"*1\r\n$+4\r\nPING\r\n", "*1\r\n$04\r\nPING\r\n", "*01\r\n", "ECHO \"a\"b\r\n", "ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"\\\"\r\n",
	}
	var b strings.Builder
	for range 1 + random.IntN(8) {
		sound := 22
		if random.IntN(4) == 0 {
			sound = len(pieces)
		}
		b.WriteString(pieces[random.IntN(sound)])
	}
	return b.String()
}

func TestRandomStreamsAgreeWithTheReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		stream := randomStream(random)
		lim := fuzzLimits(byte(i))
		requireReference(t, lim, stream)
		if i&4 != 0 { // which the reference does not implement
			lim.MaxSkip = 100
		}
		want, wantErr := split(lim, []byte(stream))
		commands, err := split(lim, randomChunks([]byte(stream), uint64(i))...)
		require.Equal(t, wantErr, err, "%q", stream)
		require.Equal(t, want, commands, "%q", stream)
	}
}
