package session

import "github.com/cellserver/cellserver/commands/command"

// What a call knows only by its face is found again here.

func sessionOf(x *command.Client) *Session { return x.Session.(*Session) }

func laneOf(x *command.Worker) *Lane { return x.Lane.(*Lane) }

func engineOf(x *command.Server) *Engine { return x.Host.(*Engine) }
