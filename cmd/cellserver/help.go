package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
)

// help writes the general help, or the help on each given name. The name of a command may consist
// of several arguments. A name without help is an error.
func help(topics []string, w io.Writer) error {
	if len(topics) == 0 {
		return writeHelp(w)
	}
	if text := commandHelp(strings.Join(topics, " ")); text != "" && len(topics) > 1 {
		_, err := io.WriteString(w, text)
		return err
	}
	for _, topic := range topics {
		topic = strings.TrimLeft(topic, "-")
		if _, whole := answers["--"+topic]; whole || topic == "help" {
			return writeHelp(w)
		}
		option, _ := config.Help(topic)
		texts := slices.DeleteFunc([]string{manual[topic], option, commandHelp(topic)}, func(t string) bool { return t == "" })
		if len(texts) == 0 {
			return fmt.Errorf("there is no help for %q%s", topic, config.DidYouMean(topic, topicNames()))
		}
		if _, err := io.WriteString(w, strings.Join(texts, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// commandHelp returns the syntax and the summary of a command, or of all its subcommands. It
// returns "" if there is no such command.
func commandHelp(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), " ", "|")
	var b strings.Builder
	for _, c := range commands.NewTable().All() {
		if c.Run == nil || c.Name != name && !strings.HasPrefix(c.Name, name+"|") {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n%s\n", strings.TrimSpace(shown(c.Name)+" "+c.Syntax), c.Summary)
		if c.Reply != "" {
			fmt.Fprintf(&b, "Reply: %s\n", c.Reply)
		}
	}
	return b.String()
}

// topicNames returns all names with a help text.
func topicNames() []string {
	names := append(words(), config.Names()...)
	for _, name := range commandNames() {
		names = append(names, name, shown(name))
	}
	return names
}

// words returns the possible first arguments that are neither a file nor an option.
func words() []string {
	return append(slices.Sorted(maps.Keys(tools)), serviceTool, "help", "version")
}

// mistyped returns an error if arg, the first argument, is neither an option nor a file, and looks
// more like a mistyped word or option than like a path. Otherwise it returns nil.
func mistyped(arg string) error {
	if strings.HasPrefix(arg, "-") {
		return nil
	}
	if _, err := os.Stat(arg); err == nil {
		return nil
	}
	if slices.Contains(config.Names(), arg) {
		return fmt.Errorf("%q is neither a command nor a file, did you mean \"--%s\"?", arg, arg)
	}
	if guess := config.DidYouMean(arg, words()); guess != "" {
		return fmt.Errorf("unknown command %q%s (cellserver help lists all)", arg, guess)
	}
	if !strings.ContainsAny(arg, `./\`) {
		return fmt.Errorf("%q is neither a command nor a file (cellserver help lists the commands)", arg)
	}
	return nil
}

// asksForHelp reports whether the arguments of a tool ask for its help. If -h of the tool names a
// host, it asks for help only as the last argument.
func asksForHelp(name string, args []string) bool {
	if name == "top" || name == "ping" || name == "policy" { // the option -h of these tools takes a host
		return slices.Contains(args, "--help") || len(args) > 0 && args[len(args)-1] == "-h"
	}
	return slices.ContainsFunc(args, func(a string) bool { return a == "--help" || a == "-h" || a == "-help" })
}
