-- board.lua: a user's place in the sets of one board. Follows numbers.lua in the same scope.
-- A board has a set of members and one of distinct groups for each of its spans, best first in ascending order:
--   periods  key = sign * points * 2^t + tie, range = 2^t
--   windows  key = sign * points, range = 1
--   heat     key = sign * heat in the log domain (see score.lua), range = 0
-- Members of equal points form a group: floor(key / range), or the key itself where range is 0.

local function group_of(key, range)
  if range == 0 then return key end
  return math.floor(key / range)
end

-- First and last key of a group.
local function keys_of(group, range)
  if range == 0 then return text(group), text(group) end
  return text(group * range), text(group * range + range - 1)
end

-- Notes that someone left a group: the last one closes it.
local function leave_group(members, distinct, group, range)
  local first, last = keys_of(group, range)
  if redis.call('ZCOUNT', members, first, last) == 0 then redis.call('ZREM', distinct, text(group)) end
end

-- Puts `user` at `key`; `held` is its key so far, if any.
local function put(members, distinct, user, range, held, key)
  local group = group_of(key, range)
  redis.call('ZADD', members, text(key), user)
  redis.call('ZADD', distinct, text(group), text(group))
  if held and group_of(held, range) ~= group then leave_group(members, distinct, group_of(held, range), range) end
end

-- Takes `user` off; whether it was there.
local function take_off(members, distinct, user, range)
  local held = tonumber(redis.call('ZSCORE', members, user) or nil)
  if not held then return false end
  redis.call('ZREM', members, user)
  leave_group(members, distinct, group_of(held, range), range)
  return true
end

local function keep_for(ttl, ...)
  if ttl <= 0 then return end
  for _, key in ipairs({ ... }) do redis.call('EXPIRE', key, ttl) end
end
