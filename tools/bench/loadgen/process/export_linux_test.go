package process

// ParseStat reads /proc/PID/stat.
var ParseStat = parseStat

// ParsePeak reads /proc/PID/status.
var ParsePeak = parsePeak
