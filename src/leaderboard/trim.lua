-- trim.lua: takes off a set whoever stands behind a position, the last of those who stay. Follows numbers.lua, board.lua
-- and position.lua.
-- KEYS  1 generation  2 version  3 members  4 distinct
-- ARGV  1 expected generation  2 key and 3 user of the position  4 range  5 how many at most  6 board  7 channel of
--       changes
-- Reply how many were taken off. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local from = place_after(KEYS[3], ARGV[2], ARGV[3])
local beyond = redis.call('ZRANGE', KEYS[3], from, from + tonumber(ARGV[5]) - 1)
for _, user in ipairs(beyond) do take_off(KEYS[3], KEYS[4], user, tonumber(ARGV[4])) end
if #beyond > 0 then
  redis.call('INCR', KEYS[2])
  redis.call('PUBLISH', ARGV[7], 'board ' .. ARGV[6])
end
return #beyond
