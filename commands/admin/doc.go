// Package admin implements the commands for operators: INFO, CONFIG, COMMAND, SAVE, SHUTDOWN and
// others.
package admin
