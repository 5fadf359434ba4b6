package process

// ParseStat parses /proc/PID/stat.
var ParseStat = parseStat

// ParsePeak parses /proc/PID/status.
var ParsePeak = parsePeak
