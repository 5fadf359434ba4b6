// Package value reads and spells numbers as Lua 5.1 does, and makes values of the
// interpreter without an allocation where it can. It knows no script.
package value
