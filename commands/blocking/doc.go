// Package blocking implements the commands that wait for elements: BLPOP, BZPOPMIN, BLMOVE and
// others. The command that adds an element to a key serves the clients that wait for it, while it
// holds the lock of the key and before any other command can take the element. Lists and sorted
// sets define how their elements are popped.
package blocking
