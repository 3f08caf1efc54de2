-- write_history.lua: past check-ins of one user, without rewards. Follows mutation.lua in the same scope.
-- The record after them was computed outside from what was read before; it is only written if that still stands.
-- KEYS  1-3 see mutation.lua  4 bucket of records  5… for each date: year's segment and, if the date's bitmaps are
--       kept: day's bitmap, day's counter, activity bitmap, activity counter
-- ARGV  1-6 see mutation.lua  7 record as read, empty if none  8 record after  9 last bit of a year's segment
--       10 bit within a day's bitmap  11… for each date: bit within the year's segment, TTL of the year (s), TTL of the
--       day (s; empty: its bitmaps are not kept)
-- Reply the answer is 'WRITTEN' or 'CHANGED' (the record is another by now: read again).
if (redis.call('HGET', KEYS[4], ARGV[3]) or '') ~= ARGV[7] then return done(false, 'CHANGED') end
local key = 5
for at = 11, #ARGV, 3 do
  if redis.call('STRLEN', KEYS[key]) == 0 then redis.call('SETBIT', KEYS[key], ARGV[9], 0) end
  redis.call('SETBIT', KEYS[key], ARGV[at], 1)
  redis.call('EXPIRE', KEYS[key], ARGV[at + 1])
  key = key + 1
  if ARGV[at + 2] ~= '' then
    for bitmap = key, key + 2, 2 do
      if redis.call('SETBIT', KEYS[bitmap], ARGV[10], 1) == 0 then redis.call('INCR', KEYS[bitmap + 1]) end
      redis.call('EXPIRE', KEYS[bitmap], ARGV[at + 2])
      redis.call('EXPIRE', KEYS[bitmap + 1], ARGV[at + 2])
    end
    key = key + 4
  end
end
redis.call('HSET', KEYS[4], ARGV[3], ARGV[8])
return done(true, 'WRITTEN')
