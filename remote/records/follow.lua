-- Reads the changes after a version. KEYS are the version and the log. ARGV: 1 the known version, ''
-- for none; 2 its number; 3 its id; 4 the maximum number of entries; 5 the number of bytes after which
-- no more entries follow. Returns the version that is there, the two parts of the time, 'ok', and the
-- entries in their order. If the log does not lead from the known version to the one that is there,
-- it returns 'reload' and no entries. It reads no entries if the maximum is 0.
local head, time = redis.call('GET', KEYS[1]) or '', redis.call('TIME')
local reply = {head, time[1], time[2], 'ok'}
if head == ARGV[1] or ARGV[4] == '0' then return reply end
local last = tonumber(string.match(head, '^%d+') or '0')
local at, previous, bytes = tonumber(ARGV[2]) + 1, ARGV[3], 0
if at > last then return {head, time[1], time[2], 'reload'} end
while at <= last and #reply - 4 < tonumber(ARGV[4]) and bytes < tonumber(ARGV[5]) do
  local entry = redis.call('HGET', KEYS[2], string.format('%.0f', at))
  if not entry or string.sub(entry, 17, 32) ~= previous then return {head, time[1], time[2], 'reload'} end
  previous, bytes, at = string.sub(entry, 1, 16), bytes + #entry, at + 1
  reply[#reply+1] = entry
end
return reply
