package strict

import "go.yaml.in/yaml/v3"

// maxExpanded is how many values the aliases of a text may add to it.
const maxExpanded = 10_000

// ReadLoosely is as [Read] for texts that other programs read, which take anchors, aliases and merge
// keys, and the first of several documents. What an alias stands for has the line of its anchor.
// second is the line at which a further document begins, which is not looked at, or 0.
func ReadLoosely(name string, text []byte, most int) (root Value, r *Reader, second int) {
	root, r, more := read(name, text, most)
	if !root.IsSet() {
		return root, r, 0
	}
	x := expander{r: r}
	root.node = x.expand(root.node, 1, false)
	if r.Faults() == nil {
		r.check(root.node, 1)
	}
	if more != nil {
		if second = more.line; more.err != nil {
			second, _ = faultOf(more.err)
		}
	}
	return root, r, second
}

// expander puts values in the place of their aliases.
type expander struct {
	r     *Reader
	added int
	over  bool // there is a fault for too many
}

// expand returns a copy of n without aliases, anchors and merge keys. inAlias is whether n stands for
// an alias.
func (x *expander) expand(n *yaml.Node, depth int, inAlias bool) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return x.expand(n.Alias, depth, true)
	}
	if inAlias {
		x.added++
	}
	if x.added > maxExpanded || depth > maxDepth {
		if !x.over {
			x.r.Fault(n.Line, "aliases stand for more than %d values, or for themselves", maxExpanded)
		}
		x.over = true
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag, Line: n.Line}
	}
	is := *n
	is.Anchor, is.Content = "", make([]*yaml.Node, 0, len(n.Content))
	if n.Kind == yaml.MappingNode {
		x.fields(&is, n, depth, inAlias)
		return &is
	}
	for _, child := range n.Content {
		is.Content = append(is.Content, x.expand(child, depth+1, inAlias))
	}
	return &is
}

// fields expands the fields of a mapping into is. Those of its own win over those that it merges, and
// of these the first.
func (x *expander) fields(is, n *yaml.Node, depth int, inAlias bool) {
	var merged []*yaml.Node
	has := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := x.expand(n.Content[i], depth+1, inAlias), x.expand(n.Content[i+1], depth+1, inAlias)
		switch {
		case key.Tag != mergeTag:
			has[key.Value] = true
			is.Content = append(is.Content, key, value)
		case value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		default:
			merged = append(merged, value)
		}
	}
	for _, m := range merged {
		if m.Kind != yaml.MappingNode {
			if !x.over {
				x.r.Fault(m.Line, "a merge key (<<) needs mappings")
			}
			continue
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if key := m.Content[i]; !has[key.Value] {
				has[key.Value] = true
				is.Content = append(is.Content, key, m.Content[i+1])
			}
		}
	}
}

// Inner returns the text of a scalar that is a text of its own, such as a file in a ConfigMap, with
// line ends before it, so that a line of it has the number that it has in this text. It is not ok if
// the value is no text.
func (v Value) Inner(what string) (text []byte, ok bool) {
	value, ok := v.String(what)
	if !ok {
		return nil, false
	}
	before := v.node.Line - 1
	if v.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		before++ // it begins behind the sign
	}
	text = make([]byte, before, before+len(value))
	for i := range text {
		text[i] = '\n'
	}
	return append(text, value...), true
}
