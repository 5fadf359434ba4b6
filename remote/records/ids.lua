-- Reads the ids of changes. KEYS are the version and the log. ARGV are numbers of changes. Returns the
-- version that is there, and for each number the id of the change, '' if the log does not have it. If
-- there is a third key, it is set to the version. A replica that has this write also has the changes.
local reply = {redis.call('GET', KEYS[1]) or ''}
if KEYS[3] then redis.call('SET', KEYS[3], reply[1]) end
for _, number in ipairs(ARGV) do
  reply[#reply+1] = string.sub(redis.call('HGET', KEYS[2], number) or '', 1, 16)
end
return reply
