// Package commands is the list of what cellserver can be asked. Each group of commands is a
// package below it; what they have in common is package command.
package commands
