-- place.lua: where a key stands among one partition's members, or where that partition's own user stands.
-- Follows numbers.lua, board.lua and position.lua.
-- KEYS  1 members  2 distinct  3 version  4 day in force, for windows only
-- ARGV  1 user  2 range  3 key; empty: the user's own  4 the caller's day, for windows only  5 'above': the member right
--       before is wanted too
-- Reply {key, members before, members with better points, distinct better points, participants, version, {user, key} of
--       the member right before (empty: there is none, or it is not wanted)}; key is nil when the user is not there. Or
--       the error STALEDAY.
if KEYS[4] and redis.call('GET', KEYS[4]) ~= ARGV[4] then return redis.error_reply('STALEDAY another day is in force') end
local user, range = ARGV[1], tonumber(ARGV[2])
local participants, version = redis.call('ZCARD', KEYS[1]), tonumber(redis.call('GET', KEYS[3]) or 0)
local own = redis.call('ZSCORE', KEYS[1], user)
local key = tonumber(ARGV[3] ~= '' and ARGV[3] or own or nil)
if not key then return { false, 0, 0, 0, participants, version, {} } end
local group = group_of(key, range)
local before = own and redis.call('ZRANK', KEYS[1], user) or place_before(KEYS[1], text(key), user)
local above = {}
if ARGV[5] == 'above' and before > 0 then above = redis.call('ZRANGE', KEYS[1], before - 1, before - 1, 'WITHSCORES') end
return {
  text(key),
  before,
  redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. keys_of(group, range)),
  redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. text(group)),
  participants,
  version,
  above,
}
