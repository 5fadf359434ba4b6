-- Writes the summary of a server, which expires, behind the time in Unix milliseconds and a space. KEYS is its key. ARGV: 1
-- the summary; 2 the number of milliseconds until it expires.
local time = redis.call('TIME')
local at = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
redis.call('SET', KEYS[1], at .. ' ' .. ARGV[1], 'PX', ARGV[2])
return 'ok'
