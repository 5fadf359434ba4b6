// Package commands lists all groups of commands of cellserver. Each group is a package below it.
// Package command has the parts that the groups share.
package commands
