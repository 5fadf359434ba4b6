-- Reads a part of the records. KEYS are the version and the hashes. ARGV: 1 the index of the hash to
-- begin with, from 0; 2 the cursor in it, '0' at first; 3 the number of records after which the script
-- ends. Returns the version that is there, the index and the cursor to go on with, and fields and
-- values alternately. At the end the index is the number of hashes. So the caller knows the version
-- at which each record was read.
local index, cursor, most = tonumber(ARGV[1]), ARGV[2], 2 * tonumber(ARGV[3])
local reply = {redis.call('GET', KEYS[1]) or '', '', ''}
while index < #KEYS - 1 and #reply - 3 < most do
  local part = redis.call('HSCAN', KEYS[index+2], cursor, 'COUNT', ARGV[3])
  for _, text in ipairs(part[2]) do reply[#reply+1] = text end
  cursor = part[1]
  if cursor == '0' then index = index + 1 end
end
reply[2], reply[3] = string.format('%.0f', index), cursor
return reply
