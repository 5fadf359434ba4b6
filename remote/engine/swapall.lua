-- Compare and set of several keys of one slot: all or none. ARGV has for each of KEYS what
-- swap.lua takes for one. Returns 1, or the values that are there.
local same, done, wrote = true, true, false
local there = {}
for i, key in ipairs(KEYS) do
  local old, new = ARGV[3*i-2], ARGV[3*i-1]
  there[i] = redis.call('GETRANGE', key, 0, 11)
  if there[i] ~= old then same = false end
  if there[i] ~= string.sub(new, 1, 12) then done = false end
  if new ~= '' then wrote = true end
end
if not same then
  if done and wrote then return 1 end
  local values = {}
  for i, key in ipairs(KEYS) do
    values[i] = redis.call('GET', key) or ''
  end
  return values
end
for i, key in ipairs(KEYS) do
  local new = ARGV[3*i-1]
  if new ~= '' then
    redis.call('SET', key, new, 'PX', ARGV[3*i])
  elseif there[i] ~= '' then
    redis.call('DEL', key)
  end
end
return 1
