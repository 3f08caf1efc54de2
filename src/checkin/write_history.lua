-- write_history.lua: past check-ins of one user, without rewards. Follows mutation.lua and day.lua in the same scope.
-- The record after them was computed outside from what was read before; it is only written if that still stands.
-- KEYS  1-3 see mutation.lua  4 bucket of records  5… for each date: year's segment and, if the date's bitmaps are
--       kept: day's bitmap, day's counter, activity bitmap, activity counter
-- ARGV  1-6 see mutation.lua  7 record as read, empty if none  8 record after  9 last bit of a year's segment
--       10 row  11… for each date: bit within the year's segment, TTL of the year (s), TTL of the
--       day (s; empty: its bitmaps are not kept)
-- Reply the answer is 'WRITTEN' or 'CHANGED' (the record is another by now: read again).
if (redis.call('HGET', KEYS[4], ARGV[3]) or '') ~= ARGV[7] then return done(false, 'CHANGED') end
local key, row = 5, tonumber(ARGV[10])
for at = 11, #ARGV, 3 do
  mark_year(KEYS[key], ARGV[at], ARGV[9], ARGV[at + 1])
  key = key + 1
  if ARGV[at + 2] ~= '' then
    for bitmap = key, key + 2, 2 do mark_day(KEYS[bitmap], KEYS[bitmap + 1], row, ARGV[at + 2]) end
    key = key + 4
  end
end
redis.call('HSET', KEYS[4], ARGV[3], ARGV[8])
return done(true, 'WRITTEN')
