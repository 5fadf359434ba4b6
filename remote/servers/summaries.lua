-- Returns the summaries of servers: the values of KEYS, '' for a key that is not there.
local reply = {}
for i = 1, #KEYS do reply[i] = redis.call('GET', KEYS[i]) or '' end
return reply
