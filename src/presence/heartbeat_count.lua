-- heartbeat_count.lua: a user is here now, where only a count is kept. Follows mutation.lua and day.lua in the same scope.
-- KEYS  1-3 see mutation.lua  4 day's activity bitmap  5 its counter  6 bitmap of the minute
-- ARGV  1-6 see mutation.lua  7 row  8 TTL of the day (s)  9 TTL of the minute (s)
-- Reply the answer is 1 for the first sighting today, 0 for a later one.
mark_bit(KEYS[6], tonumber(ARGV[7]), ARGV[9])
local first = mark_day(KEYS[4], KEYS[5], tonumber(ARGV[7]), ARGV[8])
return done(first, first and '1' or '0')
