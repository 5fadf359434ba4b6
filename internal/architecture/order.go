package architecture

import "slices"

// graph says which file uses which: g[a][b], by their numbers.
type graph [][]bool

func newGraph(files []string, all []Reference) graph {
	number := map[string]int{}
	for i, f := range files {
		number[f] = i
	}
	g := make(graph, len(files))
	for i := range g {
		g[i] = make([]bool, len(files))
	}
	for _, r := range all {
		g[number[r.From]][number[r.To]] = true
	}
	return g
}

// uses is 1 if file a uses file b, and otherwise 0.
func (g graph) uses(a, b int) int {
	if g[a][b] {
		return 1
	}
	return 0
}

// upward returns which of the references point up when the files stand in the
// order in which the fewest do: users above what they use.
//
// To find the best of all orders would take too long for a large package. This one
// is by Eades, Lin and Smyth, and then mended file by file, so the number is never
// too small, it is 0 where 0 can be had, and the same files have the same number
// everywhere.
func upward(files []string, all []Reference) (up []Reference) {
	g := newGraph(files, all)
	place := map[string]int{}
	for i, n := range g.improve(g.order()) {
		place[files[n]] = i
	}
	for _, r := range all {
		if place[r.To] < place[r.From] {
			up = append(up, r)
		}
	}
	return up
}

// order puts the files that no remaining file uses on top, those that use no
// remaining file at the bottom, and decides by what is used and uses most where
// there is neither.
func (g graph) order() []int {
	remaining := make([]int, len(g))
	for i := range remaining {
		remaining[i] = i
	}
	var top, bottom []int
	take := func(from func(n int) bool, to *[]int) bool {
		for i, n := range remaining {
			if from(n) {
				*to = append(*to, n)
				remaining = slices.Delete(remaining, i, i+1)
				return true
			}
		}
		return false
	}
	count := func(n int) (out, in int) {
		for _, m := range remaining {
			out += g.uses(n, m)
			in += g.uses(m, n)
		}
		return out, in
	}
	for len(remaining) > 0 {
		if take(func(n int) bool { out, _ := count(n); return out == 0 }, &bottom) ||
			take(func(n int) bool { _, in := count(n); return in == 0 }, &top) {
			continue
		}
		surplus := func(n int) int { out, in := count(n); return out - in }
		best := slices.MaxFunc(remaining, func(a, b int) int { return surplus(a) - surplus(b) })
		take(func(n int) bool { return n == best }, &top)
	}
	slices.Reverse(bottom)
	return append(top, bottom...)
}

// improve moves single files to where fewer references point up, until no move
// helps.
func (g graph) improve(order []int) []int {
	for improved := true; improved; {
		improved = false
		for from, n := range order {
			to, most := from, 0
			for _, step := range []int{1, -1} {
				gain := 0
				for i := from + step; i >= 0 && i < len(order); i += step {
					// n passes the file at i: what they use of each other turns round.
					gain += step * (g.uses(order[i], n) - g.uses(n, order[i]))
					if gain > most {
						to, most = i, gain
					}
				}
			}
			if most > 0 {
				order = slices.Insert(slices.Delete(order, from, from+1), to, n)
				improved = true
				break
			}
		}
	}
	return order
}

// inCycles counts the references between files that, by whatever way, use each
// other.
func inCycles(files []string, all []Reference) (n int) {
	g := newGraph(files, all)
	reach := newGraph(files, all)
	for via := range g {
		for a := range g {
			for b := range g {
				reach[a][b] = reach[a][b] || reach[a][via] && reach[via][b]
			}
		}
	}
	for a := range g {
		for b := range g {
			if g[a][b] && reach[b][a] {
				n++
			}
		}
	}
	return n
}
