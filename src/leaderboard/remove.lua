-- remove.lua: takes a user off every open span of a board. Follows mutation.lua and board.lua.
-- KEYS  1-3 see mutation.lua  4 version  5… pairs of members, distinct
-- ARGV  1-6 see mutation.lua  7 board  8 channel of changes  9… the range of each pair
-- Reply the answer is 'REMOVED' or 'ABSENT'.
local removed = false
for pair = 0, #ARGV - 9 do
  local there = take_off(KEYS[5 + 2 * pair], KEYS[6 + 2 * pair], ARGV[4], tonumber(ARGV[9 + pair]))
  removed = removed or there
end
if not removed then return done(false, 'ABSENT') end
redis.call('INCR', KEYS[4])
redis.call('PUBLISH', ARGV[8], 'board ' .. ARGV[7])
return done(true, 'REMOVED')
