package config

import (
	"fmt"
	"io"
	"strings"
)

// WriteOptions writes docs/options.md to w: a page with all options, and with all options of Redis
// that have no effect here.
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
- Files that options name are regular files, or links to some: the server refuses devices and FIFOs,
  reads 64 MiB of users, 16 MiB of a configuration or certificates and 1 MiB of policies at most, and
  gives up after five seconds if the file system does not answer. Clients are served meanwhile.
- You may give ` + "`save`" + `, ` + "`client-output-buffer-limit`" + `, ` + "`rename-command`" + ` and ` + "`include`" + ` several
  times. Points of ` + "`save`" + ` add up within the file, and within the flags.
- The server accepts ` + "`loadmodule`" + ` of redis-cell, which is built in. It refuses any other
  module.
- ` + "`user name rule ...`" + ` defines a user by the rules of ACL SETUSER. ` + "`aclfile`" + ` names a file of
  such lines instead, which ACL LOAD reads again.
- ` + "`rename-command`" + ` gives a command another name, or ` + "`\"\"`" + ` for none, also in scripts.
- ` + "`daemonize yes`" + ` runs the server in the background. The command returns when the server
  listens, and with status 1 if it cannot. ` + "`pidfile`" + ` and ` + "`supervised`" + ` work as in Redis.
- The second list has the options of Redis that have no effect here. The server accepts
  them and names them in one warning. It refuses values that ask for something it does
  not do.

By default Redis keeps snapshots. This server keeps nothing unless ` + "`save`" + ` or ` + "`appendonly`" + `
says so. Its first line of output says which it is.

## Change a configuration

- ` + "`cellserver check-config FILE`" + ` says whether a server would start with a file. It tells all
  faults with their lines, those of the file of users included, and ends with status 1 if
  there is one. Flags may follow, as for the server.
- SIGHUP and ` + "`CONFIG RELOAD`" + ` read the file again, and the files that it names. The options are
  then those that a restart would have: the file's, and the default of what it leaves out. Flags
  and the environment still override it. Either all of it takes effect, or nothing; the log and
  the reply have all faults. Clients of users who are gone or have other rules are closed, and no
  others. Options that CONFIG SET cannot change need a restart, so a change of one is a fault.
  Without a file the options stay as they are, and the file of users is read again.
- ` + "`CONFIG SET`" + ` changes options until the server stops. ` + "`CONFIG REWRITE`" + ` writes what is in force
  into the file of the start. Lines that say what is in force stay as they are, and so do comments, their order
  and included files. A new value takes the place of the old one, or stands at the end. What the
  environment has set is not written. Without ` + "`aclfile`" + ` users are written too, as lines ` + "`user`" + `.
  The file is replaced at once, so a crash leaves the old one or the new one.

## Options of this server

`

const redisIntro = `
## Options of Redis 7.2 that have no effect here

CONFIG GET shows one value: the default of Redis, or the value that is true here. CONFIG SET
replies OK and changes nothing, so that programs that tune Redis when they start can
continue. If an option is immutable in Redis, it is immutable here.
A value that asks for something this server does not do is an error in a file, in a flag
and in CONFIG SET. So is ` + "`sentinel`" + `.
`
