-- remove.lua: takes a user off every open span of a board. Follows mutation.lua and board.lua.
-- KEYS  1-3 see mutation.lua  4 version  5 day in force  6… pairs of members, distinct
-- ARGV  1-6 see mutation.lua  7 board  8 channel of changes  9 the caller's day, for windows only  10… the range of each
--       pair
-- Reply the answer is 'REMOVED' or 'ABSENT'. Or the error STALEDAY: the windows are of another day.
if ARGV[9] ~= '' and redis.call('GET', KEYS[5]) ~= ARGV[9] then return redis.error_reply('STALEDAY another day is in force') end
local removed = false
for pair = 0, #ARGV - 10 do
  local there = take_off(KEYS[6 + 2 * pair], KEYS[7 + 2 * pair], ARGV[4], tonumber(ARGV[10 + pair]))
  removed = removed or there
end
if not removed then return done(false, 'ABSENT') end
redis.call('INCR', KEYS[4])
redis.call('PUBLISH', ARGV[8], 'board ' .. ARGV[7])
return done(true, 'REMOVED')
