package architecture

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// These are sizes in the picture, in characters.
const (
	pictureWidth = 98
	boxWidth     = 44 // maximum number of characters between the borders of a box
)

// box is a box of the picture. It stands for a folder with the packages below it, or for several
// folders with the same imports.
type box struct {
	name string
	// members are the packages in the box, except for the one that gives the box its name.
	members []string
	// imports are the boxes that this box imports, except for boxes that one of the others imports,
	// too.
	imports []string
	// level is the row of the box. The program is in row 0, and each box is in a row below all
	// boxes that import it.
	level int
}

// Picture draws the packages of the server in rows of boxes. A box imports only boxes in rows
// further down.
func Picture(packages []Package) string {
	boxes := arrange(packages)
	var b strings.Builder
	for level := 0; ; level++ {
		var band []box
		for _, x := range boxes {
			if x.level == level {
				band = append(band, x)
			}
		}
		if len(band) == 0 {
			return b.String()
		}
		drawBand(&b, merge(band))
	}
}

// boxNames returns, for each folder of the server, the name of its box. This is the outermost
// folder above it that is a package, too. There are special boxes for groups of commands and for
// the packages that groups share. If two boxes would import each other, their folders get boxes of
// their own.
func boxNames(packages []Package) map[string]string {
	server := reached(packages, program)
	names := map[string]string{}
	for folder := range server {
		names[folder] = folder
		for above := path.Dir(folder); above != "."; above = path.Dir(above) {
			if server[above] {
				names[folder] = above
			}
		}
		switch {
		case slices.Contains(groups, folder):
			names[folder] = "commands (groups)"
		case within(folder, "commands/internal"):
			names[folder] = "commands (shared)"
		}
	}
	for {
		edges := boxImports(packages, names)
		apart := false
		for folder, name := range names {
			if folder != name && edges.reach(name)[name] {
				names[folder], apart = folder, true
			}
		}
		if !apart {
			return names
		}
	}
}

// graph has, for each box, the boxes that it imports.
type graph map[string]map[string]bool

func boxImports(packages []Package, names map[string]string) graph {
	edges := graph{}
	for _, p := range packages {
		from, ok := names[p.Folder]
		if !ok {
			continue
		}
		if edges[from] == nil {
			edges[from] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			if to := names[imported]; to != from {
				edges[from][to] = true
			}
		}
	}
	return edges
}

// reach returns all boxes that the box from imports, directly or indirectly.
func (g graph) reach(from string) map[string]bool {
	found := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		for next := range g[name] {
			if !found[next] {
				found[next] = true
				visit(next)
			}
		}
	}
	visit(from)
	return found
}

// level returns the length of the longest path of imports from the program to the box called name.
func (g graph) level(name string) int {
	level := 0
	for from, imports := range g {
		if imports[name] {
			level = max(level, g.level(from)+1)
		}
	}
	return level
}

// direct returns the boxes that the box called name imports, except for boxes that one of the
// others imports, directly or indirectly.
func (g graph) direct(name string) (all []string) {
	for to := range g[name] {
		implied := false
		for other := range g[name] {
			implied = implied || other != to && g.reach(other)[to]
		}
		if !implied {
			all = append(all, to)
		}
	}
	slices.Sort(all)
	return all
}

// arrange returns all boxes of the picture, in the order of their names.
func arrange(packages []Package) (all []box) {
	names := boxNames(packages)
	edges := boxImports(packages, names)
	for _, name := range slices.Sorted(maps.Keys(edges)) {
		x := box{name: name, imports: edges.direct(name), level: edges.level(name)}
		for _, folder := range slices.Sorted(maps.Keys(names)) {
			if names[folder] == name && folder != name {
				x.members = append(x.members, path.Base(folder))
			}
		}
		all = append(all, x)
	}
	return all
}

// merge joins those boxes of a row that have no members and the same imports.
func merge(band []box) (all []box) {
	for _, x := range band {
		i := slices.IndexFunc(all, func(o box) bool {
			return len(o.members) == 0 && len(x.members) == 0 && slices.Equal(o.imports, x.imports)
		})
		if i < 0 {
			all = append(all, x)
			continue
		}
		all[i].name += ", " + x.name
	}
	return all
}

func (x box) lines() []string {
	all := wrap(x.name, "")
	if len(x.members) > 0 {
		all = append(all, wrap(strings.Join(x.members, " "), "  ")...)
	}
	if len(x.imports) > 0 {
		all = append(all, wrap("▼ "+strings.Join(x.imports, ", "), "")...)
	}
	return all
}

// wrap breaks text into lines that fit into a box. Each line begins with indent.
func wrap(text, indent string) (all []string) {
	line := indent
	for _, word := range strings.Split(text, " ") {
		if line != indent && width(line)+1+width(word) > boxWidth {
			all = append(all, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return append(all, line)
}

// width returns the number of characters in s. Every character in the picture takes one column.
func width(s string) int { return len([]rune(s)) }

// drawBand draws the boxes of one level, as many side by side as fit.
func drawBand(b *strings.Builder, band []box) {
	for len(band) > 0 {
		total, n := 0, 0
		for n < len(band) {
			w := widest(band[n].lines()) + 5
			if n > 0 && total+w > pictureWidth+1 {
				break
			}
			total += w
			n++
		}
		drawRow(b, band[:n])
		band = band[n:]
	}
}

func widest(lines []string) (most int) {
	for _, line := range lines {
		most = max(most, width(line))
	}
	return most
}

// drawRow draws boxes side by side, all with the height of the highest.
func drawRow(b *strings.Builder, row []box) {
	height := 0
	for _, x := range row {
		height = max(height, len(x.lines()))
	}
	for at := -1; at <= height; at++ {
		line := ""
		for _, x := range row {
			lines := x.lines()
			most := widest(lines)
			switch {
			case at < 0:
				line += "┌" + strings.Repeat("─", most+2) + "┐ "
			case at == height:
				line += "└" + strings.Repeat("─", most+2) + "┘ "
			case at < len(lines):
				line += fmt.Sprintf("│ %-*s │ ", most, lines[at])
			default:
				line += "│ " + strings.Repeat(" ", most) + " │ "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// pictureBegins and pictureEnds are the marks around the picture in ARCHITECTURE.md.
const (
	pictureBegins = "<!-- picture: make generate -->\n"
	pictureEnds   = "<!-- picture: end -->\n"
)

// WithPicture returns page with a new picture of packages between the marks. It returns an error if
// page does not have the marks.
func WithPicture(page string, packages []Package) (string, error) {
	before, rest, found := strings.Cut(page, pictureBegins)
	_, after, ended := strings.Cut(rest, pictureEnds)
	if !found || !ended {
		return "", fmt.Errorf("the page has no lines %q and %q", strings.TrimSpace(pictureBegins), strings.TrimSpace(pictureEnds))
	}
	return before + pictureBegins + "```\n" + Picture(packages) + "```\n" + pictureEnds + after, nil
}
