// Package blocking has the commands that wait for elements: BLPOP, BZPOPMIN, BLMOVE and
// others. The command that adds an element to a key serves the clients that wait for it. It
// does so while it holds the lock of the key, before any other command can take the element.
// Lists and sorted sets define how their elements are taken.
package blocking
