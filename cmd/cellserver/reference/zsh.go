package reference

import (
	"fmt"
	"io"
	"strings"
)

// Zsh writes a completion function. Its file is _cellserver in a directory of fpath.
func Zsh(w io.Writer, p *Program) error {
	var b strings.Builder
	b.WriteString("#compdef cellserver\n# It is generated: cellserver completion zsh\n\n_cellserver() {\n  local -a commands topics options\n  commands=(\n")
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(&b, "    %s\n", single(c.Name+":"+brief(c.Text)))
	}
	b.WriteString("  )\n  if (( CURRENT > 2 )); then\n    case $words[2] in\n")
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(&b, "    %s)\n", c.Name)
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "      if (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then\n        topics=(%s)\n        _describe -t topics topic topics\n        return\n      fi\n", singles(c.Words))
		}
		if c.Name == "help" {
			fmt.Fprintf(&b, "      topics=(%s)\n      _describe -t topics topic topics\n", singles(p.Topics))
		} else {
			fmt.Fprintf(&b, "      _arguments%s '*:file:_files'\n", zshArguments(p.flags(c), " "))
		}
		b.WriteString("      return\n      ;;\n")
	}
	b.WriteString("    esac\n  fi\n  options=(" + zshArguments(p.Options, "\n    ") + "\n  )\n")
	b.WriteString(zshEnd)
	_, err := io.WriteString(w, b.String())
	return err
}

// zshArguments returns the specifications of options for _arguments, each after separator.
func zshArguments(options []Option, separator string) string {
	var b strings.Builder
	for i := range options {
		o := &options[i]
		spec := o.dashed() + "[" + zshText(brief(o.Text)) + "]"
		switch choices := o.choices(); {
		case o.Hint == "":
		case choices != nil:
			spec += ":value:(" + strings.Join(choices, " ") + ")"
		case o.isPath():
			spec += ":path:_files"
		default:
			spec += ":" + zshText(o.Hint) + ": "
		}
		b.WriteString(separator + single(spec))
	}
	return b.String()
}

// zshText escapes text for a specification of _arguments.
func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

// single returns a word in single quotes, in which only the quote itself is special.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func singles(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = single(strings.ReplaceAll(w, ":", `\:`))
	}
	return strings.Join(quoted, " ")
}

const zshEnd = `  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe -t commands command commands
  fi
  _arguments $options '*:file:_files'
}

_cellserver "$@"
`
