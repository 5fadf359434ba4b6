// Package calendar computes windows that follow a calendar: days, weeks, months and years in a time
// zone. A [Rule] determines the windows, and [Rule.Window] returns the window that contains an
// instant. [Load] returns a [Zone] by its IANA name.
//
// The rules of time zones are part of the program: they are the file tzdata.zip, and [Release]
// returns the release of tzdata from which it was made. The package reads no file and no clock, so
// servers with the same release compute the same windows on every machine. tzdata is in the public
// domain.
//
// A window begins when the clocks of its zone show its first local time, and ends when the next one
// begins. So a day has 23 or 25 hours if daylight saving begins or ends in it. If clocks show that
// time twice, the window begins the first time. If they never show it because they were advanced,
// the window begins as much later as they were advanced: a day from 02:30 begins at 03:30 if 02:00
// to 03:00 is left out. Python calls this fold=0, and Java and JavaScript's Temporal do the same by
// default. A day that a zone leaves out as a whole has no window.
package calendar
