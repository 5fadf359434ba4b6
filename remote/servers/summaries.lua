-- Returns the summaries of servers: the values of KEYS, at most ARGV[1] + 1 bytes of each, and '' for a key that is not there
-- or has no string.
local reply = {}
for i = 1, #KEYS do
  local value = redis.pcall('GETRANGE', KEYS[i], 0, ARGV[1])
  reply[i] = type(value) == 'string' and value or ''
end
return reply
