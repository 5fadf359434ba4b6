-- Writes a change, all of it or nothing. KEYS are the version, the log, and the hashes that change.
-- ARGV: 1 the expected version, '' for none; 2 the new version; 3 its number; 4 the beginning of its
-- entry in the log; 5 '1' if the pairs follow there; 6 the number of the entry to remove, or ''; and
-- from 7 for each hash its pairs, each string as its length, a colon and its bytes. An empty value
-- deletes the field. Returns the version that is there then: the new one if the change was written.
-- Sent again after it was done, it does nothing. Servers that listen to the channel with the name of
-- the version's key are told of the change. Engines before Redis 7 have no sharded channels.
local head = redis.call('GET', KEYS[1]) or ''
if head ~= ARGV[1] then return head end
redis.call('HLEN', KEYS[2])
local fields = {}
for i = 3, #KEYS do
  redis.call('HLEN', KEYS[i])
  local text, at, all = ARGV[i+4], 1, {}
  while at <= #text do
    local colon = string.find(text, ':', at, true)
    local length = colon and tonumber(string.sub(text, at, colon-1))
    if not length or colon + length > #text then return redis.error_reply('ERR a pair has no end') end
    all[#all+1] = string.sub(text, colon+1, colon+length)
    at = colon + length + 1
  end
  if #all % 2 ~= 0 then return redis.error_reply('ERR a field has no value') end
  fields[i] = all
end
-- Nothing was written up to here. A user of the store that may not run one of the next two commands fails before a record
-- is written, and after them nothing fails. '' is no field.
local entry = ARGV[4]
if ARGV[5] == '1' then entry = entry .. table.concat(ARGV, '', 7) end
redis.call('HDEL', KEYS[2], ARGV[6])
redis.call('HSET', KEYS[2], ARGV[3], entry)
for i = 3, #KEYS do
  local all = fields[i]
  for j = 1, #all, 2 do
    if all[j+1] == '' then
      redis.call('HDEL', KEYS[i], all[j])
    else
      redis.call('HSET', KEYS[i], all[j], all[j+1])
    end
  end
end
redis.call('SET', KEYS[1], ARGV[2])
local told = redis.pcall('SPUBLISH', KEYS[1], ARGV[2])
if type(told) == 'table' then redis.pcall('PUBLISH', KEYS[1], ARGV[2]) end
return ARGV[2]
