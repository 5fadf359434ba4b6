package process

// ParseStat reads /proc/PID/stat.
var ParseStat = parseStat
