package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// runSteps is the number of steps of the bar for one run.
const runSteps = 1000

// progress shows the progress of a session on a terminal.
type progress struct {
	bar *progressbar.ProgressBar
	// span and commands say when one run ends: after this time, or after this number of commands.
	span     time.Duration
	commands int64
	// finished counts the runs that have ended. before is the last state of the present run.
	finished int
	before   loadgen.Live
}

func newProgress(w io.Writer, wanted bool, o *options, runs int) *progress {
	p := &progress{span: o.duration, commands: o.count}
	if !wanted || !isTerminal(w) {
		return p
	}
	p.bar = progressbar.NewOptions(runs*runSteps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
	return p
}

// isTerminal reports whether w is a character device, which usually is a terminal. Writing to
// another one, such as /dev/null, does no harm.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// watch returns the callback for the progress of the named target's runs, nil if nothing is shown.
func (p *progress) watch(name string) func(loadgen.Live) {
	if p.bar == nil {
		return nil
	}
	return func(l loadgen.Live) {
		p.bar.Describe(p.describe(name, l))
		_ = p.bar.Set(p.finished*runSteps + p.steps(l)) // an error of the terminal is not a fault of the run
	}
}

// describe returns a line about the progress since the last call.
func (p *progress) describe(name string, l loadgen.Live) string {
	seconds := (l.Elapsed - p.before.Elapsed).Seconds()
	text := name
	if seconds > 0 && l.Completed >= p.before.Completed {
		text += fmt.Sprintf(" %.0f/s", float64(l.Completed-p.before.Completed)/seconds)
	}
	if l.Elapsed < 0 {
		text += ", warming up"
	}
	if l.Denied > 0 {
		text += fmt.Sprintf(", %.0f%% denied", 100*float64(l.Denied)/float64(max(l.Measured, 1)))
	}
	if l.Errors > 0 {
		text += fmt.Sprintf(", %d errors", l.Errors)
	}
	p.before = l
	return text
}

// steps returns how many of runSteps the present run has completed.
func (p *progress) steps(l loadgen.Live) int {
	done := float64(l.Elapsed) / float64(max(p.span, 1))
	if p.commands > 0 {
		done = float64(l.Measured) / float64(p.commands)
	}
	return int(runSteps * min(max(done, 0), 1))
}

func (p *progress) next() {
	p.finished++
	p.before = loadgen.Live{}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // an error of the terminal is not a fault of the run
	}
}
