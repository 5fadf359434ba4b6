-- Writes the record of a server and returns the records of all live servers. KEYS is the hash of the records. ARGV: 1
-- the id of the server; 2 its record, '' to remove it; 3 the number of milliseconds for which it counts as live; 4 the
-- maximum number of servers; 5 the maximum length of an id and a record together. A value in the hash has the time of
-- its writing and the time of its end, in Unix milliseconds, and the record, with spaces between them. Values of another
-- form, those that have ended, and those that end too late since the clock was set back are removed. Returns the time in
-- milliseconds, 'ok', and ids and values alternately, or 'full' if there are too many servers.
local hash, id, record, live, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local at = string.format('%.0f', now)
if redis.call('HLEN', hash) > 2 * most then return {at, 'full'} end
local reply, seen, cursor = {at, 'ok'}, {[id] = true}, '0'
repeat
  local part = redis.call('HSCAN', hash, cursor, 'COUNT', ARGV[4])
  cursor = part[1]
  for i = 1, #part[2], 2 do
    local field, value = part[2][i], part[2][i+1]
    if not seen[field] then
      seen[field] = true
      local ends = tonumber(string.match(value, '^%d+ (%d+) ') or '0')
      if ends > now and ends <= now + 10 * live and #field + #value <= tonumber(ARGV[5]) then
        reply[#reply+1], reply[#reply+2] = field, value
      else
        redis.call('HDEL', hash, field)
      end
    end
  end
until cursor == '0'
if record == '' then
  redis.call('HDEL', hash, id)
elseif (#reply - 2) / 2 >= most then
  return {at, 'full'}
else
  local value = at .. ' ' .. string.format('%.0f', now + live) .. ' ' .. record
  redis.call('HSET', hash, id, value)
  reply[#reply+1], reply[#reply+2] = id, value
end
return reply
