-- build_window.lua: one step of building a window's set for a day from the sets of its days. Follows
-- numbers.lua, board.lua, window.lua, position.lua and progress.lua.
-- Each user is written with its whole value over the days, so that a step done twice, or a live write in between, does no
-- harm. Whoever stands in the set already stands there with the whole value: written when an earlier day was walked, or by
-- a score.
-- KEYS  1 generation  2 progress  3 members  4 distinct  5 to 7 those three of the day after  8 day in force  9 version
--       10… the day sets, oldest first
-- ARGV  1 expected generation  2 2^t of the day sets  3 operator  4 users a step  5 TTL (s)  6 length of the window
--       (days)
-- Reply 1 when the set is complete, 0 when there is more to do. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local range, operator, step, ttl = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local in_force = redis.call('GET', KEYS[8]) or ''
local under = built_under(in_force, ARGV[6], KEYS[9])
local progress = redis.call('HMGET', KEYS[2], 'walking', 'key', 'user', 'under')
local walking, key, user = tonumber(progress[1] or 1), progress[2], progress[3]
if progress[4] ~= under then
  walking, key, user = 1, false, false
  -- Left from a time when the window was kept before, it may be about users who were taken off since.
  if not kept_up(in_force, ARGV[6]) then redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]) end
end

local days = {}
for i = 10, #KEYS do days[#days + 1] = KEYS[i] end
if walking > #days then return 1 end

local left = step
while left > 0 and walking <= #days do
  -- The place after the last user written: by key and user, since places shift when others are removed.
  local from = key and place_after(days[walking], key, user) or 0
  local page = redis.call('ZRANGE', days[walking], from, from + left - 1, 'WITHSCORES')
  for i = 1, #page, 2 do
    local someone = page[i]
    if not redis.call('ZSCORE', KEYS[3], someone) then
      put_over_days(KEYS[3], KEYS[4], someone, over_days(days, walking, #days, someone, range, operator))
    end
  end
  if #page < 2 * left then
    walking, key, user = walking + 1, false, false
  else
    key, user = page[#page], page[#page - 1]
  end
  left = left - #page / 2
end
redis.call('HSET', KEYS[2], 'walking', walking, 'key', key or '', 'user', user or '', 'under', under)
if not key then redis.call('HDEL', KEYS[2], 'key', 'user') end
keep_for(ttl, KEYS[2], KEYS[3], KEYS[4])
return walking > #days and 1 or 0
