// Package admin has the commands of operators: INFO, CONFIG, COMMAND, ACL, SAVE, SHUTDOWN
// and others.
package admin
