-- leave.lua: a session of a user ends. Follows mutation.lua in the same scope.
-- KEYS  1-3 see mutation.lua  4 the user's sessions  5 site's last-seen set  6 last-seen set of the room, if it is in one
-- ARGV  1-6 see mutation.lua  7 session: room, space, name  8 room, empty if none
--       9 seen before this (ms) is no longer online  10 TTL of the sets (s)
-- Reply the answer is 1 if another session keeps the user online there (in the room; else on the site), 0 if not.
redis.call('HDEL', KEYS[4], ARGV[7])
local since = tonumber(ARGV[9])
local on_site, in_room
local flat = redis.call('HGETALL', KEYS[4])
for i = 1, #flat, 2 do
  local at = tonumber(flat[i + 1])
  if at >= since then
    on_site = math.max(on_site or at, at)
    if string.match(flat[i], '^(%S*) ') == ARGV[8] then in_room = math.max(in_room or at, at) end
  end
end
for set = 5, #KEYS do
  local newest = on_site
  if set == 6 then newest = in_room end
  if newest then
    redis.call('ZADD', KEYS[set], whole(newest), ARGV[4])
    redis.call('EXPIRE', KEYS[set], ARGV[10])
  else
    redis.call('ZREM', KEYS[set], ARGV[4])
  end
end
local left = on_site
if KEYS[6] then left = in_room end
return done(false, left and '1' or '0')
