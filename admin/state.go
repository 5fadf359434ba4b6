package admin

import (
	"net/http"
	"sync"
)

// Server is the HTTP server of an admin port: see [New].
type Server struct {
	Config
	http    http.Server
	conns   *connections
	serving chan struct{} // requests other than probes
	waiting chan struct{} // requests that wait after failed logins
	stopped chan struct{} // closed by Shutdown
	stop    sync.Once
}

const apiPath = "/api/v1/"

// maxWaiting is the maximum number of requests that wait at the same time after failed logins.
// Further requests are refused.
const maxWaiting = 16
