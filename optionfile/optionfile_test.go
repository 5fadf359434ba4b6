package optionfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	content, err := Read(path, 7)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
	_, err = Read(path, 6)
	require.EqualError(t, err, path+": longer than 6 bytes")
	_, err = Read(path+".none", 6)
	require.ErrorIs(t, err, os.ErrNotExist)
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link), "as Kubernetes mounts secrets")
	content, err = Read(link, 7)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
	_, err = Read(filepath.Dir(path), 7)
	require.ErrorIs(t, err, errNotRegular)
}

func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "c"), 0o700))
	files, err := ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, files)
	files, err = Glob(filepath.Join(dir, "?"))
	require.NoError(t, err)
	require.Len(t, files, 3)
}

// TestAccessesThatHang: the caller gets an error in time. Once many accesses hang, it gets the
// error at once. Everything works again when they return.
func TestAccessesThatHang(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		for i := range maxStuck {
			began := time.Now()
			err := Write("path", func() error { <-hangs; return errors.New("late") })
			require.ErrorIs(t, err, errTimeout)
			if i == 0 {
				require.Equal(t, Timeout, time.Since(began))
			} else {
				require.Equal(t, timeoutBeside, time.Since(began))
			}
		}
		began := time.Now()
		err := Write("path", func() error { return nil })
		require.ErrorIs(t, err, errStuck)
		require.True(t, strings.HasPrefix(err.Error(), "write path: "), err)
		require.Zero(t, time.Since(began))
		close(hangs)
		synctest.Wait()
		require.NoError(t, Write("path", func() error { return nil }))
		require.Zero(t, stuck.Load())
	})
}
