package commands

// What a call knows only by its face is found again here.

func sessionOf(x *Client) *Session { return x.Owner.(*Session) }

func laneOf(x *Worker) *Lane { return x.Owner.(*Lane) }

func engineOf(x *Server) *Engine { return x.Owner.(*Engine) }
