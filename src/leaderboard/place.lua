-- place.lua: where a key stands among one partition's members, or where that partition's own user stands.
-- KEYS  1 members  2 distinct points
-- ARGV  1 user  2 2^t  3 key; empty: the user's own
-- Reply {key, members before, members with better points, distinct better points, participants}; key is nil when the
--       user is not there.
local user, range = ARGV[1], tonumber(ARGV[2])
local participants = redis.call('ZCARD', KEYS[1])
local key = tonumber(ARGV[3] ~= '' and ARGV[3] or redis.call('ZSCORE', KEYS[1], user) or nil)
if not key then return { false, 0, 0, 0, participants } end
local function whole(n) return n == 0 and '0' or string.format('%.0f', n) end

-- Among members of the very same key those with smaller ids stand before: found by bisecting, not by scanning.
local function before()
  local own = redis.call('ZRANK', KEYS[1], user)
  if own then return own end
  local low = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. whole(key))
  local high = low + redis.call('ZCOUNT', KEYS[1], whole(key), whole(key))
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZRANGE', KEYS[1], middle, middle)[1] < user then low = middle + 1 else high = middle end
  end
  return low
end

local base = math.floor(key / range) * range
return {
  whole(key),
  before(),
  redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. whole(base)),
  redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. whole(base / range)),
  participants,
}
