package docgen

import (
	"fmt"
	"strings"
)

// The measures of the picture are in pixels.
const (
	chartWidth  = 720
	panelTop    = 30 // distance from the top of a panel to its first bar
	barStep     = 22
	barHeight   = 14
	panelGap    = 14
	barLeft     = 110
	barMostWide = 520
)

// chartStyle sets a background, so that the picture is legible on any page.
const chartStyle = `<style>text{font:12px sans-serif;fill:#24292f}.t{font-size:14px;font-weight:bold}.e{text-anchor:end}` +
	`.b{fill:#fff}.o{fill:#afb8c1}.p{fill:#1f6feb}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.o{fill:#6e7681}.p{fill:#388bfd}}</style>`

// panel is a part of the picture: bars with the same unit.
type panel struct {
	title string
	bars  []bar
}

type bar struct {
	name, figure string
	value        float64
}

// drawChart returns panels as an SVG image with horizontal bars. The first bar of each panel has
// the colour of this server.
func drawChart(panels []panel) string {
	height := panelGap
	for _, p := range panels {
		height += panelTop + len(p.bars)*barStep + panelGap
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, "%s\n<rect class=\"b\" width=\"%d\" height=\"%d\"/>\n", chartStyle, chartWidth, height)
	top := panelGap
	for _, p := range panels {
		drawPanel(&b, p, top)
		top += panelTop + len(p.bars)*barStep + panelGap
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawPanel(b *strings.Builder, p panel, top int) {
	most := 0.0
	for _, r := range p.bars {
		most = max(most, r.value)
	}
	fmt.Fprintf(b, "<text class=\"t\" x=\"14\" y=\"%d\">%s, less is better</text>\n", top+12, p.title)
	for i, r := range p.bars {
		y, class := top+panelTop+i*barStep, "o"
		if i == 0 {
			class = "p"
		}
		width := int(r.value / most * barMostWide)
		fmt.Fprintf(b, "<text class=\"e\" x=\"%d\" y=\"%d\">%s</text>\n", barLeft-8, y+11, r.name)
		fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, barLeft, y, width, barHeight)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", barLeft+width+8, y+11, r.figure)
	}
}
