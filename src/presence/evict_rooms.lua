-- evict_rooms.lua: takes users off rooms who have not been seen there for long, and empty rooms off the list of rooms.
-- KEYS  1 generation  2 rooms  3… their last-seen sets
-- ARGV  1 expected generation  2 seen before this (ms) is no longer online  3 most users to take off  4 TTL of the sets (s)
--       5… rooms
-- Reply how many users were taken off. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local removed, most = 0, tonumber(ARGV[3])
for i = 5, #ARGV do
  local set = KEYS[i - 2]
  local gone = redis.call('ZRANGE', set, '-inf', '(' .. ARGV[2], 'BYSCORE', 'LIMIT', 0, most - removed)
  if #gone > 0 then redis.call('ZREM', set, unpack(gone)) end
  removed = removed + #gone
  local oldest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  if oldest then redis.call('ZADD', KEYS[2], oldest, ARGV[i]) else redis.call('ZREM', KEYS[2], ARGV[i]) end
  if removed == most then break end
end
redis.call('EXPIRE', KEYS[2], ARGV[4]) -- should it have been made anew
return removed
