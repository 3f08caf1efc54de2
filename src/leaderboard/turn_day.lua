-- turn_day.lua: puts a day in force for a board's windows, whose sets are complete. It only moves forward.
-- KEYS  1 generation  2 day in force
-- ARGV  1 expected generation  2 the day: its number, then the windows that are kept up with it
-- Reply the day in force now. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local function number(day) return tonumber(string.match(day, '^%-?%d+')) end
local in_force = redis.call('GET', KEYS[2])
if in_force and number(in_force) > number(ARGV[2]) then return in_force end
redis.call('SET', KEYS[2], ARGV[2])
return ARGV[2]
