-- board.lua: puts a score into all periods of one board. Follows mutation.lua in the same scope.
-- Its keys from KEYS[k]:  k version  then for each period: members, distinct points
-- Its arguments from ARGV[a]:  a board  a+1 channel of changes  a+2 sign (-1: highest first, 1: lowest first)
--   a+3 max_points  a+4 number of periods  then for each: 2^t, tick of this write, TTL (s; 0: for ever)
-- A member's key is sign * points * 2^t + tie, so that the best stand first in ascending order.

-- The points within a key; adding 0 turns -0 into 0.
local function points_of(key, sign, range)
  return sign * math.floor(key / range) + 0
end

-- The tie of someone who arrives at points whose keys begin at `base`: now, or right after whoever holds them.
local function arrival(members, base, range, tick)
  if range == 1 then return 0 end
  local last = redis.call('ZRANGE', members, whole(base + range - 1), whole(base), 'BYSCORE', 'REV', 'LIMIT', 0, 1,
    'WITHSCORES')
  if last[2] then tick = math.max(tick, tonumber(last[2]) - base + 1) end
  return math.min(tick, range - 1)
end

-- Puts `user` at `after` points; `held` is its key so far, if any.
local function place(members, distinct, user, sign, range, tick, held, after)
  local base = sign * after * range
  redis.call('ZADD', members, whole(base + arrival(members, base, range, tick)), user)
  if held then
    local left = math.floor(held / range) * range
    if redis.call('ZCOUNT', members, whole(left), whole(left + range - 1)) == 0 then
      redis.call('ZREM', distinct, whole(points_of(held, sign, range)))
    end
  end
  redis.call('ZADD', distinct, whole(sign * after), whole(after))
end

-- Where `user` stands: key, members before it, members with better points, distinct better points, participants.
local function standing(members, distinct, user, sign, range)
  local key = tonumber(redis.call('ZSCORE', members, user))
  local base = math.floor(key / range) * range
  return table.concat({
    whole(key),
    whole(redis.call('ZRANK', members, user)),
    whole(redis.call('ZCOUNT', members, '-inf', '(' .. whole(base))),
    whole(redis.call('ZCOUNT', distinct, '-inf', '(' .. whole(base / range))),
    whole(redis.call('ZCARD', members)),
  }, ' ')
end

-- Scores `amount` for `user`. A score beyond the board's points is refused whole, or held at the edge if `saturate`.
-- Returns nil when refused, else whether anything changed and for each period 'points before (- if none)' and its
-- standing.
local function score(k, a, user, operator, amount, saturate)
  local sign, most, count = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local changes = {}
  for i = 1, count do
    local range = tonumber(ARGV[a + 2 + 3 * i])
    local held = tonumber(redis.call('ZSCORE', KEYS[k + 2 * i - 1], user) or nil)
    local before = held and points_of(held, sign, range)
    local after = amount
    if operator == 'INCREMENT' then
      after = (before or 0) + amount
    elseif operator == 'BEST' and before and sign * amount > sign * before then
      after = before
    end
    if saturate then
      after = math.max(-most, math.min(most, after))
    elseif after > most or after < -most then
      return nil
    end
    changes[i] = { range = range, held = held, before = before, after = after }
  end
  local changed, standings = false, {}
  for i, change in ipairs(changes) do
    local members, distinct = KEYS[k + 2 * i - 1], KEYS[k + 2 * i]
    local tick, ttl = tonumber(ARGV[a + 3 + 3 * i]), tonumber(ARGV[a + 4 + 3 * i])
    if change.after ~= change.before then
      changed = true
      place(members, distinct, user, sign, change.range, tick, change.held, change.after)
    end
    if ttl > 0 then
      redis.call('EXPIRE', members, ttl)
      redis.call('EXPIRE', distinct, ttl)
    end
    standings[i] = (change.before and whole(change.before) or '-') .. ' '
      .. standing(members, distinct, user, sign, change.range)
  end
  if changed then
    redis.call('INCR', KEYS[k])
    redis.call('PUBLISH', ARGV[a + 1], 'board ' .. ARGV[a])
  end
  return changed, standings
end
