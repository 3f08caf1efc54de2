-- heartbeat_count.lua: a user is here now, where only a count is kept. Follows mutation.lua in the same scope.
-- KEYS  1-3 see mutation.lua  4 day's activity bitmap  5 its counter  6 bitmap of the minute
-- ARGV  1-6 see mutation.lua  7 bit within the bitmaps  8 TTL of the day (s)  9 TTL of the minute (s)
-- Reply the answer is 1 for the first sighting today, 0 for a later one.
redis.call('SETBIT', KEYS[6], ARGV[7], 1)
redis.call('EXPIRE', KEYS[6], ARGV[9])
local first = redis.call('SETBIT', KEYS[4], ARGV[7], 1) == 0
if first then redis.call('INCR', KEYS[5]) end
redis.call('EXPIRE', KEYS[4], ARGV[8])
redis.call('EXPIRE', KEYS[5], ARGV[8])
return done(first, first and '1' or '0')
