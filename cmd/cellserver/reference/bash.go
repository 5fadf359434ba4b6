package reference

import (
	"fmt"
	"io"
	"strings"
)

// Bash writes a completion script for bash 3.2 or newer.
func Bash(w io.Writer, p *Program) error {
	var b strings.Builder
	b.WriteString(bashBegin)
	b.WriteString("  case ${COMP_WORDS[1]} in\n")
	for i := range p.Commands {
		c := &p.Commands[i]
		words := names(p.flags(c))
		fmt.Fprintf(&b, "  %s)\n    words=%s\n    command=yes\n", c.Name, lines(words))
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "    [ \"$COMP_CWORD\" != 2 ] || { words=%s files=''; }\n", lines(c.Words))
		}
		if c.Name == "help" {
			fmt.Fprintf(&b, "    [ \"$COMP_CWORD\" = 1 ] || { words=%s files=''; }\n", lines(p.Topics))
		}
		b.WriteString("    ;;\n")
	}
	b.WriteString("  esac\n  if [ -n \"$command\" ] && [ \"$COMP_CWORD\" -gt 1 ]; then\n")
	b.WriteString("    case ${COMP_WORDS[1]}$previous in\n")
	for i := range p.Commands {
		bashValues(&b, p.Commands[i].Name, p.flags(&p.Commands[i]))
	}
	b.WriteString("    esac\n  else\n")
	fmt.Fprintf(&b, "    words=%s\n", lines(names(p.Options)))
	fmt.Fprintf(&b, "    [ \"$COMP_CWORD\" = 1 ] && words+=$'\\n'%s\n", lines(p.commandNames()))
	b.WriteString("    case $previous in\n")
	bashValues(&b, "", p.Options)
	b.WriteString("    esac\n  fi\n")
	b.WriteString(bashEnd)
	_, err := io.WriteString(w, b.String())
	return err
}

// bashValues writes a case for each option that takes a value.
func bashValues(b *strings.Builder, command string, options []Option) {
	for i := range options {
		o := &options[i]
		switch {
		case o.Hint == "":
		case o.isPath():
			fmt.Fprintf(b, "    %s%s) words='' ;;\n", command, o.dashed())
		default:
			fmt.Fprintf(b, "    %s%s) words=%s files='' ;;\n", command, o.dashed(), lines(o.choices()))
		}
	}
}

// lines returns a quoted word of bash with each of words on its own line.
func lines(words []string) string {
	return "$'" + strings.Join(words, `\n`) + "'"
}

const bashBegin = `# Completion of cellserver for bash. It is generated: cellserver completion bash

_cellserver() {
  local IFS=$'\n' words='' command='' files=yes
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
`

const bashEnd = `  COMPREPLY=()
  # shellcheck disable=SC2207 # one line is one word
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$files" ] && [[ $current != -* ]]; then
    # shellcheck disable=SC2207
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}

complete -o filenames -F _cellserver cellserver
`
