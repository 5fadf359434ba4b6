-- Returns the time in Unix milliseconds, and the summaries of servers with the times of their writing: the values of KEYS, at
-- most ARGV[1] + 1 bytes of each, and '' for a key that is not there or has no string.
local time = redis.call('TIME')
local reply = {string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))}
for i = 1, #KEYS do
  local value = redis.pcall('GETRANGE', KEYS[i], 0, ARGV[1])
  reply[i + 1] = type(value) == 'string' and value or ''
end
return reply
