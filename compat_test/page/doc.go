// Package page tests the page of the admin port in a browser without a window. Some tests invent
// the responses of the API, to show each state of the page, and others use a real server in which
// incidents happen. It is a module of its own, so that the dependencies of the browser do not reach
// the server.
package page
