-- set_profile.lua: a user's name and avatar. Follows mutation.lua and touch.lua.
-- KEYS  1-3 see mutation.lua  4 bucket of profiles  5… see touch.lua
-- ARGV  1-6 see mutation.lua  7-12 for the name and for the avatar: field, 'keep', 'clear' or 'set', value  13… see touch.lua
-- Reply the answer is 'SET' or 'KEPT'.
local changed = false
for at = 7, 10, 3 do
  local field, how, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if how == 'clear' then
    if redis.call('HDEL', KEYS[4], field) == 1 then changed = true end
  elseif how == 'set' and redis.call('HGET', KEYS[4], field) ~= value then
    redis.call('HSET', KEYS[4], field, value)
    changed = true
  end
end
if changed then touch(5, 13, ARGV[4]) end
return done(changed, changed and 'SET' or 'KEPT')
