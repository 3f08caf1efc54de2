-- score.lua: puts a score into all spans of one board. Follows board.lua and window.lua in the same scope.
-- Its keys from KEYS[k]:  k version  then for each period: members, distinct
--   with windows: day in force, the day sets oldest first (the last is the day in force), then for each window: members
--   and distinct of the day in force, members and distinct of the day after
--   with heat: members, distinct
-- Its arguments from ARGV[a]:  a board  a+1 channel of changes  a+2 sign (-1: highest first, 1: lowest first)
--   a+3 max_points  a+4 number of periods  then for each: 2^t, tick of this write, TTL (s; 0: for ever)
--   then the number of windows and, if any: day in force, number of day sets, which of them this write is dated (0: none),
--   which of the periods is that day (0: none), 2^t of the day sets, the board's operator, TTL (s), the length of each
--   window in days
--   then 'heat' or 'cold' and, if heat: the half-lives since the board's base, the offset of the log domain

-- Who moved from where to where, in each span that is shown now: what the message of a change says (live/message.rs).
local moves = {}

-- Puts `user` at `key`, as board.lua does, and notes the move.
local function move(members, distinct, user, range, held, key)
  put(members, distinct, user, range, held, key)
  moves[#moves + 1] = ' ' .. string.match(members, '[^:]+$') .. ' ' .. (held and text(held) or '-') .. ' ' .. text(key)
end

-- The tie of someone who arrives at points whose keys begin at `base`: now, or right after whoever holds them.
local function arrival(members, base, range, tick)
  if range == 1 then return 0 end
  local last = redis.call('ZRANGE', members, text(base + range - 1), text(base), 'BYSCORE', 'REV', 'LIMIT', 0, 1,
    'WITHSCORES')
  if last[2] then tick = math.max(tick, tonumber(last[2]) - base + 1) end
  return math.min(tick, range - 1)
end

-- Where `user` stands: key, members before it, members with better points, distinct better points, participants.
local function standing(members, distinct, user, range)
  local key = tonumber(redis.call('ZSCORE', members, user))
  local group = group_of(key, range)
  return table.concat({
    text(key),
    whole(redis.call('ZRANK', members, user)),
    whole(redis.call('ZCOUNT', members, '-inf', '(' .. keys_of(group, range))),
    whole(redis.call('ZCOUNT', distinct, '-inf', '(' .. text(group))),
    whole(redis.call('ZCARD', members)),
  }, ' ')
end

-- What the score makes of each period's points; nil if any would leave the board's range.
local function outcomes(k, a, user, operator, amount, saturate)
  local sign, most = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local changes = {}
  -- A sum may come back within the range, nothing else can.
  if operator ~= 'INCREMENT' and (amount > most or amount < -most) then return nil end
  for i = 1, tonumber(ARGV[a + 4]) do
    local range = tonumber(ARGV[a + 2 + 3 * i])
    local held = tonumber(redis.call('ZSCORE', KEYS[k + 2 * i - 1], user) or nil)
    local before = held and sign * group_of(held, range) + 0 -- adding 0 turns -0 into 0
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
  return changes
end

-- Brings the windows of the day in force and of the day after up to date for `user`, whose day changed by `day`.
-- Whoever stands in a window stands there with its whole value, whether the builder has come by or not; so a change of
-- today's is added to it, and only who is not there yet, a write of another day or a best that got worse is counted anew.
local function windows(k, a, user, sign, changes)
  local count = tonumber(ARGV[a])
  if count == 0 then return k, a + 1 end
  local sets, dated, day = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), changes[tonumber(ARGV[a + 4])]
  local range, operator, ttl = tonumber(ARGV[a + 5]), ARGV[a + 6], tonumber(ARGV[a + 7])
  local days = {}
  for i = 1, sets do days[i] = KEYS[k + i] end
  k = k + sets
  for i = 1, count do
    for ahead = 0, 1 do
      -- The day after is not there yet: its window holds one day less.
      local first = sets - tonumber(ARGV[a + 7 + i]) + 1 + ahead
      local members, distinct = KEYS[k + 1], KEYS[k + 2]
      k = k + 2
      if dated >= first then
        local held = tonumber(redis.call('ZSCORE', members, user) or nil)
        local key
        if held and day and dated == sets and operator == 'INCREMENT' then
          key = held + sign * (day.after - (day.before or 0))
        elseif held and day and dated == sets and not (day.before and sign * day.after > sign * day.before) then
          key = math.min(held, sign * day.after)
        else
          key = over_days(days, first, sets, user, range, operator)
        end
        if key ~= held then (ahead == 0 and move or put)(members, distinct, user, 1, held, key) end
        keep_for(ttl, members, distinct)
      end
    end
  end
  return k + 1, a + 8 + count
end

-- Where the argument 'heat' or 'cold' stands after those of the windows.
local function heat_after(a)
  local count = tonumber(ARGV[a])
  if count == 0 then return a + 1 end
  return a + 8 + count
end

-- Adds a change of points to a heat in the log domain. A key is sign * s * (log2 |heat| + offset), s the heat's own sign, 0 for no
-- heat at all: a fixed number that grows with the heat, so that the order needs no upkeep as time passes.
local function heat(k, a, user, sign, amount)
  if ARGV[a] ~= 'heat' then return end
  local since, offset = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local held = tonumber(redis.call('ZSCORE', KEYS[k], user) or nil)
  local old, log_old = 0, -math.huge
  if held and held ~= 0 then
    old = sign * held > 0 and 1 or -1
    log_old = math.abs(held) - offset
  end
  local new, log_new = 0, -math.huge
  if amount ~= 0 then
    new = amount > 0 and 1 or -1
    log_new = since + math.log(math.abs(amount)) / math.log(2)
  end
  local key = 0
  local top = math.max(log_old, log_new)
  if top > -offset then
    local sum = old * 2 ^ (log_old - top) + new * 2 ^ (log_new - top)
    -- What is left of equal heats that cancel out is noise: the last digits of their logarithms.
    if math.abs(sum) > math.max(2 ^ -40, (math.abs(top) + offset) * 2 ^ -49) then
      local log = math.max(top + math.log(math.abs(sum)) / math.log(2), 1 - offset)
      key = sign * (sum > 0 and 1 or -1) * (log + offset)
    end
  end
  if held ~= key then move(KEYS[k], KEYS[k + 1], user, 0, held, key) end
end

-- Where the next keys and arguments begin after those of a board.
local function after_board(k, a)
  local count = tonumber(ARGV[a + 4])
  k, a = k + 1 + 2 * count, a + 5 + 3 * count
  local windows = tonumber(ARGV[a])
  if windows > 0 then k, a = k + 1 + tonumber(ARGV[a + 2]) + 4 * windows, a + 7 + windows end
  if ARGV[a + 1] == 'heat' then return k + 2, a + 4 end
  return k, a + 2
end

-- Scores `amount` for `user`. A score beyond the board's points is refused whole, or held at the edge if `saturate`: so
-- check-ins feed boards, and nobody is told where they stand then.
-- Returns nil when refused; else whether anything changed, and, unless `saturate`, for each period its name, points before
-- ('-': none) and its standing.
local function score(k, a, user, operator, amount, saturate)
  moves = {}
  local sign, count = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 4])
  local after_periods, windows_at = k + 1 + 2 * count, a + 5 + 3 * count
  local changes = outcomes(k, a, user, operator, amount, saturate)
  if not changes then return nil end
  -- Where every period of its date is gone already, it still counts for heat.
  local changed, standings = count == 0 and amount ~= 0 and ARGV[heat_after(windows_at)] == 'heat', {}
  local added = amount
  if count > 0 and operator ~= 'INCREMENT' then added = changes[1].after - (changes[1].before or 0) end
  for i, change in ipairs(changes) do
    local members, distinct, range = KEYS[k + 2 * i - 1], KEYS[k + 2 * i], change.range
    if change.after ~= change.before then
      changed = true
      local base = sign * change.after * range
      local key = base + arrival(members, base, range, tonumber(ARGV[a + 3 + 3 * i]))
      move(members, distinct, user, range, change.held, key)
    end
    keep_for(tonumber(ARGV[a + 4 + 3 * i]), members, distinct)
    -- The period's name is what its key ends with: an answer that is given again later is read by it.
    local name, before = string.match(members, '[^:]+$'), change.before and whole(change.before) or '-'
    if not saturate then standings[i] = name .. ' ' .. before .. ' ' .. standing(members, distinct, user, range) end
  end
  if changed then
    local next_key, heat_at = windows(after_periods, windows_at, user, sign, changes)
    heat(next_key, heat_at, user, sign, added)
    redis.call('INCR', KEYS[k])
    redis.call('PUBLISH', ARGV[a + 1], 'board ' .. ARGV[a] .. ' ' .. user .. table.concat(moves))
  end
  return changed, standings
end

-- Whether the day in force of a board's windows is the caller's; nothing may be written for another.
local function same_day(k, a)
  local count = tonumber(ARGV[a + 4])
  local windows_at = a + 5 + 3 * count
  return ARGV[windows_at] == '0' or redis.call('GET', KEYS[k + 1 + 2 * count]) == ARGV[windows_at + 1]
end
