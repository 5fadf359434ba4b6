package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// palette holds colours that people with any colour vision can tell apart (Okabe and Ito, "Color
// Universal Design", 2008).
var palette = []color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{230, 159, 0, 255},
	{86, 180, 233, 255},
	{60, 60, 60, 255},
}

// dashes tell lines apart without colours, and when there are more lines than colours.
var dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}, {vg.Points(8), vg.Points(3), vg.Points(2), vg.Points(3)}}

const (
	chartWidth  = 9.6 * vg.Inch
	chartHeight = 4.6 * vg.Inch
	barHeight   = 0.42 * vg.Inch
)

// latencyChart draws the latency of each entry over the percentile. The percentile axis is
// logarithmic in 1-p, so that every further nine takes the same room. It returns "" if no entry has
// latencies.
func latencyChart(entries []*loadgen.Entry) (string, error) {
	p := newPlot()
	p.X.Label.Text, p.Y.Label.Text = "percentile", "latency, µs"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = microTicks{}
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs = vg.Points(4), vg.Points(8)
	farthest := 10.0
	least, most := math.Inf(1), 0.0
	for i, e := range entries {
		points := curve(e.Latency())
		if len(points) < 2 {
			continue
		}
		xy := make(plotter.XYs, len(points))
		for j, c := range points {
			left := 100 / (100 - c.Percentile)
			if j == len(points)-1 {
				left = xy[j-1].X * 1.26 // the slowest command is drawn one step after the last percentile
			}
			xy[j] = plotter.XY{X: left, Y: max(c.US, 0.001)}
			farthest = max(farthest, left)
			least, most = min(least, xy[j].Y), max(most, xy[j].Y)
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return "", fmt.Errorf("drawing the latency of %s: %w", e.Name, err)
		}
		style(line, i)
		p.Add(line)
		p.Legend.Add(e.Name, line)
	}
	if most == 0 {
		return "", nil
	}
	p.X.Min, p.X.Max = 2, farthest
	p.X.Tick.Marker = percentileTicks(farthest)
	p.Y.Min, p.Y.Max = least/1.3, most*2
	return svg(p, chartHeight)
}

// newPlot returns a plot whose layout assumes the widths of Arial. The page asks for that font,
// because the charts embed none.
func newPlot() *plot.Plot {
	p := plot.New()
	sans := func(f *font.Font, size float64) {
		f.Variant, f.Size = "Sans", vg.Points(size)
	}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Tick.Label.Font, 9)
		sans(&axis.Label.TextStyle.Font, 10)
	}
	sans(&p.Legend.TextStyle.Font, 10)
	return p
}

func style(line *plotter.Line, i int) {
	line.Color = palette[i%len(palette)]
	line.Width = vg.Points(1.8)
	line.Dashes = dashes[i/len(palette)%len(dashes)]
}

// percentileTicks labels 50, 90, 99, 99.9 and so on.
func percentileTicks(farthest float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 2, Label: "50"}}
	nines := "90"
	for v := 10.0; v <= farthest*1.0001; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: nines})
		switch {
		case v == 10:
			nines = "99"
		case v == 100:
			nines = "99.9"
		default:
			nines += "9"
		}
	}
	return ticks
}

// microTicks labels 1, 2 and 5 times the powers of ten.
type microTicks struct{}

// Ticks returns the ticks between two latencies.
func (microTicks) Ticks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	decades := math.Log10(most / least)
	for power := math.Floor(math.Log10(least)); power <= math.Ceil(math.Log10(most)); power++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, power)
			if v < least || v > most {
				continue
			}
			label := count(v)
			if v < 1 {
				label = fmt.Sprintf("%.3g", v)
			}
			if decades > 3 && m != 1 {
				label = ""
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}

// cpuChart draws the processor time per command of each entry as a bar with an error bar for the
// range of the rounds. It returns "" if no entry has that figure.
func cpuChart(entries []*loadgen.Entry) (string, error) {
	p := newPlot()
	p.X.Label.Text = "processor time of the server per command, µs"
	p.X.Min = 0
	var names []string
	bars := 0
	for i := range entries {
		e := entries[len(entries)-1-i] // the first entry is drawn at the top
		names = append(names, e.Name)
		s := e.Of(loadgen.CPU)
		if !s.Known() {
			continue
		}
		bar, err := plotter.NewBarChart(plotter.Values{s.Median}, vg.Points(14))
		if err != nil {
			return "", fmt.Errorf("drawing the cost of %s: %w", e.Name, err)
		}
		bar.Horizontal, bar.XMin, bar.LineStyle.Width = true, float64(i), 0
		bar.Color = palette[(len(entries)-1-i)%len(palette)]
		spread, err := plotter.NewXErrorBars(errorBar{s, float64(i)})
		if err != nil {
			return "", fmt.Errorf("drawing the spread of %s: %w", e.Name, err)
		}
		p.Add(bar, spread)
		bars++
	}
	if bars == 0 {
		return "", nil
	}
	p.NominalY(names...)
	return svg(p, 0.7*vg.Inch+barHeight*vg.Length(len(entries)))
}

// errorBar is the range of one bar.
type errorBar struct {
	spread loadgen.Spread
	y      float64
}

// Len, XY and XError implement the interfaces of plotter for a single point with an error.
func (errorBar) Len() int                    { return 1 }
func (e errorBar) XY(int) (float64, float64) { return e.spread.Median, e.y }
func (e errorBar) XError(int) (float64, float64) {
	return e.spread.Median - e.spread.Min, e.spread.Max - e.spread.Median
}

// svg returns a plot as an SVG element that scales with the page.
func svg(p *plot.Plot, height vg.Length) (string, error) {
	canvas := vgsvg.New(chartWidth, height)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("writing a chart: %w", err)
	}
	text := b.String()
	return text[strings.Index(text, "<svg"):], nil
}
