package strict

import "go.yaml.in/yaml/v3"

// maxExpanded is the maximum number of values that aliases may add to a text.
const maxExpanded = 10_000

// ReadLoosely is like [Read] for texts of other programs, which accept anchors, aliases and merge
// keys, and read the first of several documents. The expansion of an alias has the line of its
// anchor. second is the line at which a further document begins, which is ignored, or 0.
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

// expander replaces aliases by their values.
type expander struct {
	r     *Reader
	added int
	over  bool // the fault for too many was added
}

// expand returns a copy of n without aliases, anchors and merge keys. inAlias tells that n is part
// of an alias.
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

// fields expands the fields of a mapping into is. Its own fields have precedence over merged ones,
// and of these the first.
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

// Inner returns the content of a scalar that is a text itself, such as a file in a ConfigMap, after
// as many line ends as it has lines before it, so that its line numbers are those of this text. ok
// is false if the value is not text.
func (v Value) Inner(what string) (text []byte, ok bool) {
	value, ok := v.String(what)
	if !ok {
		return nil, false
	}
	before := v.node.Line - 1
	if v.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		before++ // the text begins on the line after the indicator
	}
	text = make([]byte, before, before+len(value))
	for i := range text {
		text[i] = '\n'
	}
	return append(text, value...), true
}
