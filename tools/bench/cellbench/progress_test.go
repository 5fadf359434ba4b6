package main

import (
	"os"
	"testing"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/stretchr/testify/require"
)

func TestProgressDescribesWhatHappened(t *testing.T) {
	p := progress{span: 10 * time.Second}
	require.Equal(t, "a, warming up", p.describe("a", loadgen.Live{Elapsed: -time.Second}))
	require.Equal(t, "a 500/s, warming up", p.describe("a", loadgen.Live{Elapsed: -500 * time.Millisecond, Completed: 250}))
	l := loadgen.Live{Elapsed: 1500 * time.Millisecond, Completed: 4250, Measured: 4000, Denied: 1000, Errors: 3}
	require.Equal(t, "a 2000/s, 25% denied, 3 errors", p.describe("a", l))
	require.Equal(t, 150, p.steps(l))
	require.Equal(t, 0, p.steps(loadgen.Live{Elapsed: -time.Second}))
	require.Equal(t, runSteps, p.steps(loadgen.Live{Elapsed: time.Minute}), "the last replies take longer")
	p.next()
	require.Equal(t, 1, p.finished)

	counted := progress{span: 10 * time.Second, commands: 8000}
	require.Equal(t, 500, counted.steps(l))
}

func TestProgressNeedsATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	defer file.Close()
	p := newProgress(file, true, &options{loadOptions: loadOptions{duration: time.Second}}, 1)
	require.Nil(t, p.watch("a"))
	p.finish()

	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer nowhere.Close()
	require.Nil(t, newProgress(nowhere, false, &options{loadOptions: loadOptions{duration: time.Second}}, 1).watch("a"), "--quiet")
	if !isTerminal(nowhere) {
		return // a system whose null device is not a character device
	}
	p = newProgress(nowhere, true, &options{loadOptions: loadOptions{duration: time.Second}}, 1)
	watch := p.watch("a")
	require.NotNil(t, watch)
	watch(loadgen.Live{Elapsed: time.Second})
	p.finish()
}
