// Package routers shows the middleware of httplimit in programs with chi, Echo and Gin.
//
// It has only tests, and is a module of its own so that clients/go does not depend on these routers.
package routers
