package top_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/top"
)

// screen is the output of a program. It reports when some text has been shown.
type screen struct {
	mu    sync.Mutex
	all   bytes.Buffer // guarded by mu
	text  []byte
	shown func()
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(p)
	if bytes.Contains(s.all.Bytes(), s.text) {
		s.shown()
	}
	return len(p), nil
}

// TestProgramShowsTheVerdictAndLeavesTheTerminalAsItWas: the program uses the terminal's alternate
// screen, and leaves it at the end.
func TestProgramShowsTheVerdictAndLeavesTheTerminalAsItWas(t *testing.T) {
	want := oneCaller()
	source := func(_ context.Context, args ...string) ([]byte, error) {
		return json.Marshal(map[string]any{"OVERVIEW": want.Overview, "HISTORY": want.History, "KEYS": want.Keys, "GROUPS": want.Groups, "CHANGES": want.Changes}[args[1]])
	}
	keyboard, press := io.Pipe()
	leave := sync.OnceFunc(func() {
		go func() { _, _ = press.Write([]byte("q")) }() // the program reads it, or has ended
	})
	out := &screen{text: []byte("orders-svc"), shown: leave}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := tea.NewProgram(top.NewModel(source, time.Second, time.Now), tea.WithContext(ctx), tea.WithInput(keyboard), tea.WithOutput(out),
		tea.WithWindowSize(120, 40), tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignals())
	_, err := p.Run()
	require.NoError(t, err)
	text := out.all.String()
	require.Contains(t, text, "One caller is over its limit.")
	require.Contains(t, text, "\x1b[?1049h")
	require.Greater(t, bytes.LastIndex(out.all.Bytes(), []byte("\x1b[?1049l")), bytes.LastIndex(out.all.Bytes(), []byte("\x1b[?1049h")))
}
