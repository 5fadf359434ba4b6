package admin

import (
	"net/http"
	"sync"
)

// Server is an admin port.
type Server struct {
	Config
	http    http.Server
	conns   *connections
	serving chan struct{} // requests that are no probes
	waiting chan struct{} // requests that wait because of failed logins
	stopped chan struct{} // closed by Shutdown
	stop    sync.Once
}

// apiPath is where the API begins.
const apiPath = "/api/v1/"

// maxWaiting is how many attempts to log in wait at once; beyond, they are refused.
const maxWaiting = 16
