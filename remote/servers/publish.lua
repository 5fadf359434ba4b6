-- Writes the summary of a server, which expires. KEYS is its key. ARGV: 1 the summary; 2 the number of milliseconds until it
-- expires.
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'ok'
