package strict

import "go.yaml.in/yaml/v3"

// maxExpanded is the maximum number of values that aliases may add to a text.
const maxExpanded = 10_000

// ReadLoosely does what [Read] does, for texts of other programs. Such texts may have anchors,
// aliases and merge keys. ReadLoosely reads the first document and ignores others; second is the
// line at which the second document begins, or 0 if there is none. The value of an alias has the
// line of its anchor.
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
	over  bool // whether the fault for too many values was added
}

// expand returns a copy of n without aliases, anchors and merge keys. depth is the depth of n, from
// 1. inAlias says that n is a part of the value of an alias. If the copy would be too large or too
// deep, expand adds a fault and returns null.
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

// fields expands the fields of the mapping n into is. The fields of n itself have precedence over
// merged fields. Among several merged fields with the same key, the first has precedence.
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

// Inner returns the content of a scalar that is itself a text to be parsed, such as a file in a
// ConfigMap. In front of the content it puts as many line ends as there are lines before the
// content, so that faults in it have the line numbers of the outer text. ok is false if the value
// is not text.
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
