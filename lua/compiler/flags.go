package compiler

import (
	"bytes"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// Flags are the flags in the first line of a script, "#!lua flags=a,b".
type Flags struct {
	// Declared says that the script has such a first line, perhaps without flags.
	Declared bool
	// NoWrites is the promise that the script does not write.
	NoWrites bool
	// AllowOOM, AllowStale, NoCluster and AllowCrossSlotKeys are the flags allow-oom, allow-stale,
	// no-cluster and allow-cross-slot-keys. They matter to servers with a bound on memory, with
	// replicas or with a cluster.
	AllowOOM, AllowStale, NoCluster, AllowCrossSlotKeys bool
}

// Declared returns the flags of a script without compiling it. It returns no flags if the first
// line is invalid.
func Declared(source []byte) Flags {
	flags, _, err := readShebang(source)
	if err != nil {
		return Flags{}
	}
	return flags
}

// readShebang returns the flags in the first line of source, and the source without that line. The
// line end stays, so that line numbers remain the same. Source without "#!" is returned as it is.
// An error is a complete error reply.
func readShebang(source []byte) (Flags, []byte, error) {
	var flags Flags
	if !bytes.HasPrefix(source, []byte("#!")) {
		return flags, source, nil
	}
	end := bytes.IndexByte(source, '\n')
	if end < 0 {
		return flags, nil, resp.Error("ERR Invalid script shebang")
	}
	words := strings.Fields(string(source[:end]))
	if words[0] != "#!lua" {
		return flags, nil, resp.Error("ERR Unexpected engine in script shebang: " + words[0])
	}
	flags.Declared = true
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return flags, nil, resp.Error("ERR Unknown lua shebang option: " + word)
		}
		if err := flags.read(list); err != nil {
			return flags, nil, err
		}
	}
	return flags, source[end:], nil
}

func (f *Flags) read(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		switch name {
		case "":
		case "no-writes":
			f.NoWrites = true
		case "allow-oom":
			f.AllowOOM = true
		case "allow-stale":
			f.AllowStale = true
		case "no-cluster":
			f.NoCluster = true
		case "allow-cross-slot-keys":
			f.AllowCrossSlotKeys = true
		default:
			return resp.Error("ERR Unexpected flag in script shebang: " + name)
		}
	}
	return nil
}
