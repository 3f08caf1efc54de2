-- take_lease.lua: takes or renews a lease.
-- KEYS  1 generation  2 lease
-- ARGV  1 expected generation  2 who  3 for how long (ms)
-- Reply 1 when it is the caller's now, 0 when somebody else holds it. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
