package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/cellserver/cellserver/persistence"
)

// restoreNext tells what to do after a restore.
const restoreNext = `%s: restored. The limits are those of the backup when the server starts.
A replica with newer state keeps that and does not follow, until you tell it: CONFIG SET repl-refuse-empty no
If Sentinel has promoted a replica meanwhile, this server does not follow it: SENTINEL FAILOVER promotes this one.
`

// restore creates the files of a stopped server from a backup.
func restore(args []string, w io.Writer) error {
	dirs, options := split(args)
	if err := unknownOption("restore", options); err != nil {
		return err
	}
	if len(dirs) != 2 || len(options) > 0 {
		return errors.New("usage: cellserver restore BACKUP DIR")
	}
	if err := persistence.Restore(persistence.OS{}, filesIn(dirs[0]), dirs[1], w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, restoreNext, dirs[1])
	return err
}
