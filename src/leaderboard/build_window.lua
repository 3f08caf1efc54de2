-- build_window.lua: one step of building a window's set for a day from the sets of its days. Follows
-- numbers.lua, board.lua, window.lua and position.lua.
-- Each user is written with its whole value over the days, so that a step done twice, or a live write in between, does no
-- harm; and a user found on an earlier day was written when that day was walked.
-- KEYS  1 generation  2 progress  3 members  4 distinct  5… the day sets, oldest first
-- ARGV  1 expected generation  2 day of the window  3 2^t of the day sets  4 operator  5 users a step  6 TTL (s)
-- Reply 1 when the set is complete, 0 when there is more to do. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local range, operator, step, ttl = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local progress = redis.call('HMGET', KEYS[2], 'day', 'walking', 'key', 'user')
local walking, key, user = tonumber(progress[2] or 1), progress[3], progress[4]
if progress[1] ~= ARGV[2] then walking, key, user = 1, false, false end

local days = {}
for i = 5, #KEYS do days[#days + 1] = KEYS[i] end
if walking > #days then return 1 end

-- The place after the last user written: by key and user, since places shift when others are removed.
local from = key and place_after(days[walking], key, user) or 0
local page = redis.call('ZRANGE', days[walking], from, from + step - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  local someone = page[i]
  local written = false
  for earlier = 1, walking - 1 do written = written or redis.call('ZSCORE', days[earlier], someone) end
  if not written then
    put_over_days(KEYS[3], KEYS[4], someone, over_days(days, walking, #days, someone, range, operator))
  end
end
if #page < 2 * step then
  walking, key, user = walking + 1, '', ''
else
  key, user = page[#page], page[#page - 1]
end
redis.call('HSET', KEYS[2], 'day', ARGV[2], 'walking', walking, 'key', key, 'user', user)
if key == '' then redis.call('HDEL', KEYS[2], 'key', 'user') end
keep_for(ttl, KEYS[2], KEYS[3], KEYS[4])
return walking > #days and 1 or 0
