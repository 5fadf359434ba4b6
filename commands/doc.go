// Package commands lists all commands of cellserver. Each group of commands is a package
// below it. Package command has what the groups share.
package commands
