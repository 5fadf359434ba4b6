package docgen

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
)

// keepFile is the picture of KEEP, relative to docs/limiters.md.
const keepFile = "images/keep.svg"

// Web calls and batch calls share a bucket of 100 tokens, to which 50 come in a second.
const (
	bucketTokens = 100
	bucketRate   = 50
	batchKeeps   = 30  // number of tokens that a batch call leaves for others
	batchCalls   = 200 // number of batch calls in each second
	warmSeconds  = 5   // seconds before the picture starts, so that the bucket is not full at its start
	keepSeconds  = 60
	calmSeconds  = 40 // second from which web calls ask for more than the rate
)

// webCalls returns the number of web calls in a second, counted from the start of the picture.
func webCalls(second int) int {
	switch {
	case second < 10:
		return 0
	case second == 20:
		return 70 // less than the tokens that are kept, plus the tokens of a second
	case second >= 30 && second < calmSeconds:
		return 40
	case second >= calmSeconds && second < 50:
		return 80
	}
	return 10
}

// taken has the tokens that the calls of a second have taken.
type taken struct{ web, batch int }

// simulateKeep lets web calls and batch calls, which keep so many tokens, come at random instants, and returns the
// tokens that they take in each second of the picture. The code that decides is that of the server.
func simulateKeep(keep int64) ([keepSeconds]taken, error) {
	// The numbers of a PCG are specified. Another version of Go may draw other numbers with the functions of a Rand.
	random := rand.NewPCG(1, 2)
	type call struct {
		at  time.Duration
		web bool
	}
	var (
		seconds [keepSeconds]taken
		kept    entry.Entry
		plan    decide.Plan
	)
	for second := -warmSeconds; second < keepSeconds; second++ {
		var calls []call
		web := webCalls(second)
		for i := range web + batchCalls {
			calls = append(calls, call{time.Duration(random.Uint64() % uint64(time.Second)), i < web})
		}
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
		for _, c := range calls {
			ask := decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
				Mode: tokenbucket.Greedy, Capacity: bucketTokens, Init: bucketTokens,
				Count: bucketRate, Period: time.Second, Interval: time.Second / bucketRate, Quantity: 1,
			}}
			if !c.web {
				ask.Keep = keep
			}
			now := limit.Instant(time.Duration(second+warmSeconds+1)*time.Second + c.at)
			if kept.Expiry <= now {
				kept = entry.Entry{}
			}
			if err := plan.One(&kept, now, &ask); err != nil {
				return seconds, fmt.Errorf("simulating KEEP: %w", err)
			}
			if plan.Action == decide.Store {
				kept = entry.Entry{Kind: plan.Kind, Expiry: plan.Expiry, Value: plan.Apply(kept.Value, nil)}
			}
			switch {
			case second < 0 || ask.Decision.Refused > 0:
			case c.web:
				seconds[second].web++
			default:
				seconds[second].batch++
			}
		}
	}
	return seconds, nil
}

// The measures of the picture of KEEP are in pixels. A token is one pixel high.
const (
	keepWidth   = 720
	keepHeight  = 340
	keepLeft    = 42
	keepRight   = keepLeft + keepSeconds*perSecond
	perSecond   = 11
	keepPanel   = 150 // height of a panel in pixels
	keepBase    = 142 // distance from the top of a panel to the line for 0 tokens
	keepLegend  = keepHeight - 12
	legendWidth = 170
)

// keepStyle has the styles that this picture needs in addition to chartStyle.
const keepStyle = `<style>.c{text-anchor:middle}.m{font-family:monospace}.g{stroke:#d8dee4}.d{stroke:#cf222e;stroke-dasharray:4 3}` +
	`.l{fill:none;stroke:#24292f;stroke-width:1.5}` +
	`@media(prefers-color-scheme:dark){.g{stroke:#30363d}.d{stroke:#ff7b72}.l{stroke:#e6edf3}}</style>`

// KeepPicture returns the picture of KEEP as SVG. Its panels show how web calls and batch calls share a limit,
// without KEEP and with it.
func KeepPicture() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
		keepWidth, keepHeight, keepWidth, keepHeight)
	fmt.Fprintf(&b, "%s\n%s\n<rect class=\"b\" width=\"%d\" height=\"%d\"/>\n", chartStyle, keepStyle, keepWidth, keepHeight)
	for i, p := range []struct {
		title, clause string
		keep          int64
	}{{"Without KEEP", "", 0}, {"With KEEP", " KEEP 30%", batchKeeps}} {
		seconds, err := simulateKeep(p.keep)
		if err != nil {
			return "", err
		}
		top := i * keepPanel
		fmt.Fprintf(&b, "<text class=\"t\" x=\"%d\" y=\"%d\">%s</text>\n", keepLeft, top+20, p.title)
		fmt.Fprintf(&b, "<text class=\"m e\" x=\"%d\" y=\"%d\">batch, %d calls per second: TB.ACQUIRE k %d %d 1%s</text>\n",
			keepRight, top+20, batchCalls, bucketTokens, bucketRate, p.clause)
		drawShares(&b, top+keepBase, &seconds)
	}
	for s := 0; s <= keepSeconds; s += 10 {
		fmt.Fprintf(&b, "<text class=\"c\" x=\"%d\" y=\"%d\">%d s</text>\n", keepLeft+s*perSecond, keepPanel+keepBase+16, s)
	}
	for i, sample := range []struct{ shape, text string }{
		{"<path class=\"l\" d=\"M%d %dh16\"/>", "web calls per second"},
		{"<path class=\"p\" d=\"M%d %dm0 -5h16v10h-16\"/>", "granted to web"},
		{"<path class=\"o\" d=\"M%d %dm0 -5h16v10h-16\"/>", "granted to batch"},
		{"<path class=\"d\" d=\"M%d %dh16\"/>", fmt.Sprintf("%d tokens per second", bucketRate)},
	} {
		x := keepLeft + i*legendWidth
		fmt.Fprintf(&b, sample.shape+"<text x=\"%d\" y=\"%d\">%s</text>\n", x, keepLegend-4, x+22, keepLegend, sample.text)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// drawShares draws a panel with no tokens at y base.
func drawShares(b *strings.Builder, base int, seconds *[keepSeconds]taken) {
	for tokens := 0; tokens <= bucketTokens; tokens += bucketRate {
		fmt.Fprintf(b, "<path class=\"g\" d=\"M%d %dH%d\"/><text class=\"e\" x=\"%d\" y=\"%d\">%d</text>\n",
			keepLeft, base-tokens, keepRight, keepLeft-6, base-tokens+4, tokens)
	}
	var line strings.Builder
	asked, granted := 0, 0
	for second, t := range seconds {
		x, web := keepLeft+second*perSecond, webCalls(second)
		fmt.Fprintf(&line, " %d,%d %d,%d", x, base-web, x+perSecond, base-web)
		for _, bar := range []struct {
			class        string
			bottom, tall int
		}{{"p", 0, t.web}, {"o", t.web, t.batch}} {
			if bar.tall > 0 {
				fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
					bar.class, x, base-bar.bottom-bar.tall, perSecond-1, bar.tall)
			}
		}
		if second < calmSeconds {
			asked, granted = asked+web, granted+t.web
		}
	}
	fmt.Fprintf(b, "<path class=\"d\" d=\"M%d %dH%d\"/>\n", keepLeft, base-bucketRate, keepRight)
	fmt.Fprintf(b, "<polyline class=\"l\" points=\"%s\"/>\n", line.String()[1:])
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">the first %d s: %d of %d web calls denied</text>\n",
		keepLeft+6, base-bucketTokens+14, calmSeconds, asked-granted, asked)
}
