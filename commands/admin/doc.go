// Package admin has the commands of operators: INFO, CONFIG, COMMAND, ACL, SAVE, SHUTDOWN
// and their kin.
package admin
