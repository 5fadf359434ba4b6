// Package blocking implements the commands that wait for elements: BLPOP, BZPOPMIN, BLMOVE and
// others. The command that adds an element to a key serves the clients that wait for it, while the
// key is still locked, so that no other command takes the element before. Packages lists and
// sortedsets define how their elements are popped.
package blocking
