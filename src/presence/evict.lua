-- evict.lua: takes users off the site's set who have not been seen for long, with what is known of their sessions.
-- KEYS  1 generation  2 site's last-seen set  3… sessions of the users, as many as are known
-- ARGV  1 expected generation  2 seen before this (ms) is no longer online  3… users, in the order of KEYS
-- Reply how many were taken off: who has been seen meanwhile stays. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local removed = 0
for i = 3, #ARGV do
  local seen = redis.call('ZSCORE', KEYS[2], ARGV[i])
  if seen and tonumber(seen) < tonumber(ARGV[2]) then
    redis.call('ZREM', KEYS[2], ARGV[i])
    if KEYS[i] then redis.call('UNLINK', KEYS[i]) end
    removed = removed + 1
  end
end
return removed
