-- heartbeat.lua: a user is here now. Follows mutation.lua and day.lua in the same scope.
-- KEYS  1-3 see mutation.lua  4 day's activity bitmap  5 its counter  6 the user's sessions  7 site's last-seen set
--       and if it is about a room: 8 its last-seen set  9 rooms
-- ARGV  1-6 see mutation.lua  7 now (ms)  8 row  9 TTL of the day (s)  10 TTL of the sets (s)
--       11 seen before this (ms) is no longer online  12 session: room, space, name  13 room, empty if none
--       14 most rooms  15 most sessions of one user
-- Reply the answer is 1 for the first sighting today, 0 for a later one; or what the user has too many of, and nothing
--       was changed: 'ROOMS' or 'SESSIONS'.
local room, since = ARGV[13], tonumber(ARGV[11])
local known = tonumber(redis.call('HGET', KEYS[6], ARGV[12]) or '-inf')
if known < since then
  local flat, sessions, in_room, gone = redis.call('HGETALL', KEYS[6]), {}, {}, {}
  for i = 1, #flat, 2 do
    local session = { name = flat[i], room = string.match(flat[i], '^(%S*) '), at = tonumber(flat[i + 1]) }
    if session.at < since then
      gone[#gone + 1] = session.name
    else
      sessions[#sessions + 1] = session
      in_room[session.room] = (in_room[session.room] or 0) + 1
    end
  end
  local rooms = 0
  for name in pairs(in_room) do if name ~= '' then rooms = rooms + 1 end end
  if room ~= '' and not in_room[room] and rooms >= tonumber(ARGV[14]) then return done(false, 'ROOMS') end
  if #sessions >= tonumber(ARGV[15]) then
    -- The one that was silent longest makes room, unless it is all that is known of the user in its room.
    local oldest
    for _, session in ipairs(sessions) do
      local spare = session.room == room or in_room[session.room] > 1
      if spare and not (oldest and oldest.at <= session.at) then oldest = session end
    end
    if not oldest then return done(false, 'SESSIONS') end
    gone[#gone + 1] = oldest.name
  end
  if #gone > 0 then redis.call('HDEL', KEYS[6], unpack(gone)) end
end
redis.call('HSET', KEYS[6], ARGV[12], whole(math.max(known, tonumber(ARGV[7]))))
redis.call('EXPIRE', KEYS[6], ARGV[10])
for set = 7, math.min(#KEYS, 8) do
  redis.call('ZADD', KEYS[set], 'GT', ARGV[7], ARGV[4])
  redis.call('EXPIRE', KEYS[set], ARGV[10])
end
if room ~= '' then
  -- The keeper comes by when the first who may have gone by then was seen.
  redis.call('ZADD', KEYS[9], 'NX', ARGV[7], room)
  redis.call('EXPIRE', KEYS[9], ARGV[10])
end
local first = mark_day(KEYS[4], KEYS[5], tonumber(ARGV[8]), ARGV[9])
return done(first, first and '1' or '0')
