package server

import (
	"fmt"
	"io"
	"strings"
)

// WriteOptions writes docs/options.md: every option there is, and every one of Redis
// that means nothing here.
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

This page is generated from the tables of the program by ` + "`make generate`" + `.

An option is given in a file with the syntax of redis.conf, as ` + "`--name value`" + `, or in
the environment as ` + "`CELLSERVER_NAME`" + `; a flag wins over the environment, that over the
file. [cellserver.conf](cellserver.conf) has the same list as a file to begin with.

A redis.conf may be used as it is:

- ` + "`include`" + ` reads another file, or all that match a pattern; its path is relative to
  ` + "`dir`" + `, as every path in a configuration. A last argument ` + "`-`" + ` reads standard input.
- ` + "`save`" + `, ` + "`client-output-buffer-limit`" + `, ` + "`rename-command`" + ` and ` + "`include`" + ` may be given
  several times. Points of ` + "`save`" + ` add up within the file, and within the flags.
- ` + "`loadmodule`" + ` of redis-cell is taken: it is built in. Any other module is refused.
- ` + "`rename-command`" + ` works, in scripts too: another name, or ` + "`\"\"`" + ` for none.
- ` + "`daemonize yes`" + ` runs the server in the background. The command returns when the server
  listens, and with status 1 if it cannot. ` + "`pidfile`" + ` and ` + "`supervised`" + ` are Redis' own.
- What Redis has and this server does not is in the second list: taken with one warning
  that names all of it, or refused where a value promises something.

Redis keeps snapshots unless it is told not to. This server keeps nothing unless ` + "`save`" + `
or ` + "`appendonly`" + ` says so; its first line says which it is.

## Options of this server

`

const redisIntro = `
## Options of Redis 7.2 that mean nothing here

CONFIG GET shows one value, Redis' default or what is true here. CONFIG SET is answered
OK, so that programs which tune Redis when they start go on, and changes nothing; where
Redis itself has an option immutable, it is here.
A value that asks for what this server does not do is an error, in a file, in a flag and
in CONFIG SET alike. So are ` + "`user`" + ` and ` + "`sentinel`" + `.
`
