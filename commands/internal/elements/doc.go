// Package elements writes elements of collections into replies. It writes a few elements at once,
// and builds a long reply in the background. It contains no commands.
package elements
