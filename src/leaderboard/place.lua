-- place.lua: where a key stands among one partition's members, or where that partition's own user stands.
-- Follows numbers.lua, board.lua and position.lua.
-- KEYS  1 members  2 distinct  3 day in force, for windows only
-- ARGV  1 user  2 range  3 key; empty: the user's own  4 the caller's day, for windows only
-- Reply {key, members before, members with better points, distinct better points, participants}; key is nil when the
--       user is not there. Or the error STALEDAY.
if KEYS[3] and redis.call('GET', KEYS[3]) ~= ARGV[4] then return redis.error_reply('STALEDAY another day is in force') end
local user, range = ARGV[1], tonumber(ARGV[2])
local participants = redis.call('ZCARD', KEYS[1])
local own = redis.call('ZSCORE', KEYS[1], user)
local key = tonumber(ARGV[3] ~= '' and ARGV[3] or own or nil)
if not key then return { false, 0, 0, 0, participants } end
local group = group_of(key, range)
return {
  text(key),
  own and redis.call('ZRANK', KEYS[1], user) or place_before(KEYS[1], text(key), user),
  redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. keys_of(group, range)),
  redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. text(group)),
  participants,
}
