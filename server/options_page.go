package server

import (
	"fmt"
	"io"
	"strings"
)

// WriteOptions writes docs/options.md: all options, and all options of Redis that have no
// effect here.
func WriteOptions(w io.Writer) error {
	var b strings.Builder
	b.WriteString(optionsIntro)
	b.WriteString("| option | default | CONFIG SET | what it does |\n|---|---|---|---|\n")
	for _, o := range options() {
		name, set, def := "`"+o.name+"`", "", ""
		if o.alias != "" {
			name += ", `" + o.alias + "`"
		}
		if o.mutable {
			set = "yes"
		}
		if o.def != "" {
			def = "`" + o.def + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, def, set, strings.ReplaceAll(o.doc, "|", `\|`))
	}
	b.WriteString(redisIntro)
	for _, g := range redisOptions() {
		writeRedisGroup(&b, g)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRedisGroup(b *strings.Builder, g redisGroup) {
	fmt.Fprintf(b, "\n### %s\n\n| option | CONFIG GET shows | refused, and why |\n|---|---|---|\n", strings.TrimSuffix(g.why, "."))
	for _, o := range g.options {
		name, value, refused := "`"+o.name+"`", "", ""
		if o.alias != "" {
			name += ", `" + o.alias + "`"
		}
		if o.value != "" {
			value = "`" + o.value + "`"
		}
		if o.hidden {
			value = "nothing"
		}
		if p, ok := promises[o.name]; ok {
			refused = "all else: " + p.why
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, value, refused)
	}
}

const optionsIntro = `# Options

` + "`make generate`" + ` writes this page from the tables of the program.

Give an option in a file with the syntax of redis.conf, as ` + "`--name value`" + `, or in the
environment as ` + "`CELLSERVER_NAME`" + `. A flag overrides the environment, and the
environment overrides the file. [cellserver.conf](cellserver.conf) has the same list as a
file that you can edit.

You can use a redis.conf unchanged:

- ` + "`include`" + ` reads another file, or all files that match a pattern. Its path is relative
  to ` + "`dir`" + `, like every path in a configuration. If the last argument is ` + "`-`" + `, the server
  reads standard input.
- You may give ` + "`save`" + `, ` + "`client-output-buffer-limit`" + `, ` + "`rename-command`" + ` and ` + "`include`" + ` several
  times. Points of ` + "`save`" + ` add up within the file, and within the flags.
- The server accepts ` + "`loadmodule`" + ` of redis-cell, which is built in. It refuses any other
  module.
- ` + "`rename-command`" + ` gives a command another name, or ` + "`\"\"`" + ` for none, also in scripts.
- ` + "`daemonize yes`" + ` runs the server in the background. The command returns when the server
  listens, and with status 1 if it cannot. ` + "`pidfile`" + ` and ` + "`supervised`" + ` work as in Redis.
- The second list has the options of Redis that have no effect here. The server accepts
  them and names them in one warning. It refuses values that ask for something it does
  not do.

By default Redis keeps snapshots. This server keeps nothing unless ` + "`save`" + ` or ` + "`appendonly`" + `
says so. Its first line of output says which it is.

## Options of this server

`

const redisIntro = `
## Options of Redis 7.2 that have no effect here

CONFIG GET shows one value: the default of Redis, or the value that is true here. CONFIG SET
replies OK and changes nothing, so that programs that tune Redis when they start can
continue. If an option is immutable in Redis, it is immutable here.
A value that asks for something this server does not do is an error in a file, in a flag
and in CONFIG SET. So are ` + "`user`" + ` and ` + "`sentinel`" + `.
`
