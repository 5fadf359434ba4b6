// Package page opens the page of the admin port in a browser, without a window: with invented
// answers of the API, to see each of its states, and with a real server that incidents happen
// to. It is a module of its own, so that what drives the browser never reaches the server.
package page
