-- heartbeat.lua: a user is here now. Follows mutation.lua and day.lua in the same scope.
-- KEYS  1-3 see mutation.lua  4 day's activity bitmap  5 its counter  6… last-seen sets: the site's, the room's if any
-- ARGV  1-6 see mutation.lua  7 now (ms)  8 row  9 TTL of the day (s)  10 TTL of the sets (s)
--       11 last seen before this (ms) is no longer online  12 how many of those to clear away from each set
-- Reply the answer is 1 for the first sighting today, 0 for a later one.
for set = 6, #KEYS do
  redis.call('ZADD', KEYS[set], 'GT', ARGV[7], ARGV[4])
  redis.call('EXPIRE', KEYS[set], ARGV[10])
  -- Each beat adds one member at most and clears away several, so a set never outgrows the users of its window by much,
  -- and no single command has much to do.
  local gone = redis.call('ZRANGE', KEYS[set], '-inf', '(' .. ARGV[11], 'BYSCORE', 'LIMIT', 0, ARGV[12])
  if #gone > 0 then redis.call('ZREM', KEYS[set], unpack(gone)) end
end
local first = mark_day(KEYS[4], KEYS[5], tonumber(ARGV[8]), ARGV[9])
return done(first, first and '1' or '0')
