-- trim.lua: takes the last members off a set, down to those whose keys are at most a bound. Follows numbers.lua and
-- board.lua.
-- KEYS  1 generation  2 version  3 members  4 distinct
-- ARGV  1 expected generation  2 largest key to keep  3 range  4 how many at most  5 board  6 channel of changes
-- Reply how many were taken off. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local beyond = redis.call('ZRANGE', KEYS[3], '(' .. ARGV[2], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[4])
for _, user in ipairs(beyond) do take_off(KEYS[3], KEYS[4], user, tonumber(ARGV[3])) end
if #beyond > 0 then
  redis.call('INCR', KEYS[2])
  redis.call('PUBLISH', ARGV[6], 'board ' .. ARGV[5])
end
return #beyond
