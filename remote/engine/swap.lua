-- Compare and set. KEYS[1] is replaced by ARGV[2], kept for ARGV[3] milliseconds, if it
-- begins with the 12 bytes ARGV[1]; an empty ARGV[1] is no key, as is an empty string, and an
-- empty ARGV[2] deletes.
-- Returns 1, or the value that is there. Sent again after it was done, it returns 1.
local there = redis.call('GETRANGE', KEYS[1], 0, 11)
if there ~= ARGV[1] then
  if ARGV[2] ~= '' and there == string.sub(ARGV[2], 1, 12) then return 1 end
  return redis.call('GET', KEYS[1]) or ''
end
if ARGV[2] ~= '' then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
elseif there ~= '' then
  redis.call('DEL', KEYS[1])
end
return 1
