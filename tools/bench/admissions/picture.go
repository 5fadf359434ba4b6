package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"time"
)

// The measures of a picture are in pixels. They are integers, so that every machine draws the same
// bytes.
const (
	width, height = 720, 236
	left          = 42
	perSecond     = 11
	barWidth      = 9

	loadBase    = 122 // y coordinate of 0 units in the upper panel
	loadPerUnit = 4
	loadTop     = 20 // number of units at the top of the upper panel

	spanBase    = 212 // y coordinate of 0 units in the lower panel
	spanPerUnit = 3
	spanTop     = 24

	sample = 250 * time.Millisecond // resolution of the line in the lower panel
)

const style = `text{font:11px sans-serif;fill:#57606a}.t{font-size:15px;font-weight:bold;fill:#24292f}` +
	`.m{font-family:monospace;font-size:12px}.e{text-anchor:end}.c{text-anchor:middle}` +
	`.o{fill:#d0d7de}.p{fill:#1f6feb}.a{fill:#ddf4ff}.l{fill:none;stroke:#1f6feb;stroke-width:1.5}` +
	`.g{stroke:#d8dee4}.d{stroke:#cf222e;stroke-dasharray:4 3}`

// picture is an SVG under construction.
type picture struct{ bytes.Buffer }

// draw returns a picture of limiter l as SVG; through has the units that l admits. The upper panel
// shows the units of every second beside those that were requested. The lower panel shows the sum
// of the units of the ten seconds that end at each instant. Only an exact limiter keeps this sum
// within the limit.
func draw(l limiter, through []passage) []byte {
	p := &picture{}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`, width, height, width, height)
	p.add(`<style>%s</style>`, style)
	p.add(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	p.text(left, 18, "t", l.title)
	p.text(width-14, 18, "m e", l.command)
	p.loadPanel(through)
	p.spanPanel(through)
	for s := 0; s <= int(length/time.Second); s += 10 {
		p.text(left+s*perSecond, height-8, "c", fmt.Sprintf("%d s", s))
	}
	p.add(`</svg>`)
	return p.Bytes()
}

// loadPanel draws two bars for each second: one for the requested units, and one for the admitted
// units.
func (p *picture) loadPanel(through []passage) {
	p.axis(loadBase, loadPerUnit, loadTop)
	offered := load()
	for s := time.Duration(0); s < length; s += time.Second {
		p.bar("o", s, units(offered, s, s+time.Second))
		p.bar("p", s, units(through, s, s+time.Second))
	}
	p.text(width-14, 36, "e", fmt.Sprintf("units per second: grey asked for, blue gone ahead (%d of %d)",
		units(through, 0, length), units(offered, 0, length)))
}

func (p *picture) bar(class string, at time.Duration, units int64) {
	if units == 0 {
		return
	}
	tall := int(units) * loadPerUnit
	p.add(`<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`,
		class, left+int(at/time.Second)*perSecond+1, loadBase-tall, barWidth, tall)
}

// spanPanel draws the number of units admitted in the window before each instant.
func (p *picture) spanPanel(through []passage) {
	p.axis(spanBase, spanPerUnit, spanTop)
	var points bytes.Buffer
	for at := time.Duration(0); at <= length; at += sample {
		// The span ends with this instant, so that a unit counts as soon as it is admitted.
		sum := units(through, at-window+1, at+1)
		fmt.Fprintf(&points, " %d,%d", left+int(at*perSecond/time.Second), spanBase-int(sum)*spanPerUnit)
	}
	p.add(`<polygon class="a" points="%d,%d%s %d,%d"/>`, left, spanBase, points.String(), left+int(length/time.Second)*perSecond, spanBase)
	p.add(`<polyline class="l" points="%s"/>`, points.String()[1:])
	y := spanBase - most*spanPerUnit
	p.add(`<line class="d" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, y, width-14, y)
	p.text(width-14, spanBase-spanTop*spanPerUnit+4, "e", fmt.Sprintf("units in the last 10 s (%d at the most); dashed the limit", busiest(through)))
}

// axis draws lines at 0, at the limit and at twice the limit, with labels.
func (p *picture) axis(base, perUnit, top int) {
	for units := 0; units <= top; units += most {
		y := base - units*perUnit
		p.add(`<line class="g" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, y, width-14, y)
		p.text(left-6, y+4, "e", fmt.Sprint(units))
	}
}

func (p *picture) text(x, y int, class, s string) {
	p.WriteString(fmt.Sprintf(`<text x="%d" y="%d" class="%s">`, x, y, class))
	_ = xml.EscapeText(p, []byte(s)) // writing to a buffer does not fail
	p.add(`</text>`)
}

func (p *picture) add(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}
