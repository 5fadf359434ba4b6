package architecture

// bound is how much there may be of something.
type bound struct {
	// most is what is allowed without an exception.
	most int
	// step is what exceptions are multiples of, so that not every line that is
	// written or deleted changes one.
	step int
	why  string
}

// bounds are the bounds, by what they bound: the fields of a struct, the
// production files of a folder, the lines of these, and the references between them
// that point up (see [Measure]).
var bounds = map[string]bound{
	"fields": {most: 24, step: 1, why: "a struct with more fields has several concerns: divide it into structs that it embeds or refers to"},
	"files":  {most: 35, step: 1, why: "nobody sees what is in a folder with more files: give a concern of its own a package of its own"},
	"lines":  {most: 4500, step: 100, why: "nobody reads a larger package as a whole: give a concern of its own a package of its own"},
	"upward": {most: 0, step: 1, why: "files use what is below them, so that each can be read with those below it alone: move what two of them use of each other to a file below both"},
}

// figure is a number that has a bound.
type figure struct {
	// bound is the key of its bound.
	bound string
	// name is the package or the struct.
	name  string
	n     int
	where string
	// counted is what was counted, where that helps to find it.
	counted []Reference
}

// key is how exceptions name the figure.
func (f figure) key() string { return f.bound + " " + f.name }

// needs returns the least exception that allows the figure, 0 if it needs none.
func (f figure) needs() int {
	b := bounds[f.bound]
	if f.n <= b.most {
		return 0
	}
	return (f.n + b.step - 1) / b.step * b.step
}

func (m Measure) figures() []figure {
	all := []figure{
		{bound: "files", name: m.Package, n: m.Files, where: m.Package},
		{bound: "lines", name: m.Package, n: m.Lines, where: m.Package},
		{bound: "upward", name: m.Package, n: len(m.Upward), where: m.Package, counted: m.Upward},
	}
	named := map[string]bool{}
	for _, s := range m.Structs { // the largest of a name comes first
		if name := m.Package + "." + s.Name; !named[name] {
			named[name] = true
			all = append(all, figure{bound: "fields", name: name, n: s.Fields, where: s.Where})
		}
	}
	return all
}
