-- turn_day.lua: puts a day in force for a board's windows, if their sets are complete. It only moves forward.
-- Follows progress.lua.
-- KEYS  1 generation  2 day in force  3 version  4… how far each window's set for that day is
-- ARGV  1 expected generation  2 the day, see progress.lua  3… the length of each window (days)
-- Reply the day in force now; an earlier one when some set is not complete. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local in_force = redis.call('GET', KEYS[2]) or ''
local day, wanted = tonumber(string.match(in_force, '^%S+')), tonumber(string.match(ARGV[2], '^%S+'))
if day and day > wanted then return in_force end
for i = 3, #ARGV do
  -- Where only the lengths change, those that were kept up before are complete.
  if not (day == wanted and kept_up(in_force, ARGV[i])) then
    local progress = redis.call('HMGET', KEYS[i + 1], 'walking', 'under')
    local complete = tonumber(progress[1] or 0) > tonumber(ARGV[i])
    if not complete or progress[2] ~= built_under(in_force, ARGV[i], KEYS[3]) then return in_force end
  end
end
redis.call('SET', KEYS[2], ARGV[2])
return ARGV[2]
