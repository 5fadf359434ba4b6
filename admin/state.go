package admin

import (
	"net/http"

	"github.com/cellserver/cellserver/front/login"
	"github.com/cellserver/cellserver/listen"
)

// Server is the HTTP server of an admin port: see [New].
type Server struct {
	Config
	http    http.Server
	conns   *listen.Connections
	serving chan struct{} // has an element for each request in progress, except probes
	door    *login.Door
}

const apiPath = "/api/v1/"
