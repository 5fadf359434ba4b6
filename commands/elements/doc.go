// Package elements writes the elements of collections into replies. It writes few elements at
// once and long replies in the background. It has no commands.
package elements
